"""PHP's tests, from Debian's source package."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CACHE = ROOT / ".cache" / "phpt"
PACKAGE = "php8.2"


def say(text):
    print(f"phpt: {text}", file=sys.stderr, flush=True)


def _apt_options():
    """Options with which apt knows source packages: the machine's own sources, with deb-src in place of deb."""
    if subprocess.run(["apt-cache", "showsrc", PACKAGE], capture_output=True, text=True).stdout.strip():
        return []
    folder = CACHE / "apt"
    (folder / "parts").mkdir(parents=True, exist_ok=True)
    (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    etc = Path("/etc/apt")
    for file in [etc / "sources.list", *etc.glob("sources.list.d/*")]:
        if file.is_file() and file.suffix in (".list", ".sources"):
            text = file.read_text()
            text = re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.M)
            text = re.sub(r"^deb ", "deb-src ", text, flags=re.M)
            (folder / "parts" / file.name).write_text(text)
    options = []
    for name, value in {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": str(folder / "parts"),
        "Dir::State::lists": str(folder / "lists"),
        "Dir::Cache::srcpkgcache": "",
        "Dir::Cache::pkgcache": "",
    }.items():
        options += ["-o", f"{name}={value}"]
    subprocess.run(["apt-get", *options, "-q", "update"], check=True, stdout=sys.stderr)
    return options


def _versions(options):
    shown = subprocess.run(["apt-cache", *options, "showsrc", PACKAGE], capture_output=True, text=True).stdout
    versions = re.findall(r"^Version: (\S+)$", shown, flags=re.M)
    return sorted(set(versions), key=lambda v: [int(n) for n in re.findall(r"\d+", v)], reverse=True)


def source():
    """The folder of the unpacked source package; fetched if there is none."""
    target = CACHE / "source"
    if (target / "run-tests.php").exists():
        return target
    CACHE.mkdir(parents=True, exist_ok=True)
    options = _apt_options()
    for version in _versions(options):
        download = CACHE / "download"
        shutil.rmtree(download, ignore_errors=True)
        download.mkdir()
        say(f"fetching the source of {PACKAGE} {version}")
        # The newest may be missing in a mirror that has an older point release.
        command = ["apt-get", *options, "-q", "source", "--download-only", f"{PACKAGE}={version}"]
        fetched = subprocess.run(command, cwd=download, stdout=sys.stderr).returncode == 0
        archives = [file for file in download.glob("*.orig.tar.*") if file.suffix != ".asc"]
        if fetched and archives:
            unpacked = download / "unpacked"
            unpacked.mkdir()
            subprocess.run(["tar", "-xf", archives[0], "-C", unpacked, "--strip-components=1"], check=True)
            unpacked.rename(target)
            shutil.rmtree(download)
            return target
    raise SystemExit(f"phpt: no source package of {PACKAGE} can be fetched")


def tree(name):
    """A copy of the tests to run in; the copies' paths are of the same length, since some tests print them."""
    target = CACHE / name
    if not target.exists():
        origin = source()
        partial = CACHE / f"{name}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        for folder in ["Zend/tests", "tests", *sorted(str(p.relative_to(origin)) for p in origin.glob("ext/*/tests"))]:
            shutil.copytree(origin / folder, partial / folder, symlinks=True)
        shutil.copy(origin / "run-tests.php", partial)
        # Some tests look at the sources around them.
        for file in ["ext/standard/basic_functions.stub.php", "Zend/zend_language_parser.y", "Zend/Makefile.frag"]:
            if (origin / file).exists():
                shutil.copy(origin / file, partial / file)
        partial.rename(target)
    return target
