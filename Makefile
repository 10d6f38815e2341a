# serve   install what is missing, build, serve examples/hello on http://127.0.0.1:8080
# test    install what is missing, run every test
# test-unit, test-e2e  some of them: see below
# lint    formatting, clippy, documentation, syntax of all PHP
# bench   measure against nginx + php-fpm, Apache mod_php, a bare hyper server, and frameworks: bench/results/
# phpt    PHP's own tests, each in an isolate with another one interleaved
# fuzz    every parser for two minutes, with a nightly compiler: fuzz/README.md
# stress  random requests to the engine, from a seed, also under valgrind: half an hour
# adversary  interrupted requests over real drivers, from a seed: whose answer is this? An hour

export PATH := $(PATH):$(HOME)/.cargo/bin

SURUS = target/release/surus
LISTEN = 127.0.0.1:8080
PEERS = $(filter --quick,$(BENCH))

.PHONY: serve build test test-unit test-e2e lint bench phpt fuzz stress adversary
.DEFAULT_GOAL := serve

serve:
	@bin/setup serve
	@cargo build --release -p surus
	@$(SURUS) serve examples/hello --listen $(LISTEN)

build:
	cargo build --release -p surus

# The end-to-end tests run the binary, which cargo does not build for them.
test:
	bin/setup test
	cargo build --release -p surus
	python3 -m unittest discover -s bench/tests
	cargo test --workspace --profile fast --no-fail-fast

# Of single parts: no server is started, nothing is installed, nobody has to be root.
test-unit:
	cargo test --profile fast --workspace $(patsubst %,--exclude %,surus-tests surus-adversary surus-phpt surus-stress)

# End to end: `make test-e2e T=edge`, or some of its tests: `make test-e2e T="edge hidden::"`. Without T all of them.
test-e2e:
	cargo build --release -p surus
	cargo test --profile fast -p surus-tests $(if $(T),--test $(firstword $(T)) -- $(wordlist 2,99,$(T)))

lint:
	bin/setup test
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --profile fast -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --document-private-items --profile fast
	@find php examples bench/apps crates/surus-zend/stubs -name '*.php' -print0 | xargs -0 -r -n 1 php8.2 -l >/dev/null
	@for script in bin/setup .ci/run; do sh -n $$script || exit 1; done

bench:
	bin/setup bench
	cargo build --release -p surus -p surus-limit
	bench/run $(BENCH)
	bench/modes/run --surus target/release/surus
	bench/peers/run $(PEERS)

phpt:
	bin/setup test
	cargo build --release -p surus
	tests/phpt/run $(PHPT)

fuzz:
	bin/setup fuzz
	fuzz/run $(FUZZ)

stress:
	bin/setup test
	cargo build --release -p surus-stress
	tests/stress/run $(STRESS)

adversary:
	bin/setup test
	cargo build --release -p surus -p surus-adversary
	target/release/surus-adversary --seconds 20 --total-seconds 3600 $(ADVERSARY)
