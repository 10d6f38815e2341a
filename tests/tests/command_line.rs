//! `surus php` takes what php-cli takes: each command line here has the output and the exit code that PHP's own has.
#![forbid(unsafe_code)]

#[path = "command_line/doctor.rs"]
mod doctor;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use surus_tests::surus::binary;
use surus_tests::temp::TempDir;

/// What the scripts read.
const INPUT: &str =
    "#!/usr/bin/php\n<?php echo 'from input ', implode(',', $argv), \"\\n\"; # a comment\n";

const SCRIPT: &str = "#!/usr/bin/php\n<?php\n// a comment\necho implode(',', $argv), ' ', $argc, ' ', PHP_SAPI, ' ', ini_get('precision'), \"\\n\";\n";

fn folder() -> TempDir {
    let folder = TempDir::new("command-line");
    folder.file("script.php", SCRIPT);
    folder.file("line.php", "<?php echo \"$argi: $argn\\n\";");
    folder.file("fatal.php", "<?php echo 'before '; undefined_function();");
    folder.file("parse.php", "<?php echo 'one' 'two';");
    folder.file(
        "memory.php",
        "<?php ini_set('memory_limit', '4M'); str_repeat('x', 1 << 24);",
    );
    folder.file(
        "exit.php",
        "<?php register_shutdown_function(fn () => print('end')); exit(7);",
    );
    folder.file("text.php", "<?php exit('a text');");
    folder.file(
        "input.php",
        "<?php echo strtoupper(stream_get_contents(STDIN)); fwrite(STDERR, 'an error');",
    );
    folder.file("tags.php", "<h1><?= 1 + 1 ?></h1>\n");
    folder.file("own.ini", "precision = 7\n");
    folder
}

fn run(mut command: Command, folder: &Path, arguments: &[&str]) -> Output {
    let mut child = command
        .args(arguments)
        .current_dir(folder)
        .env("PHP_INI_SCAN_DIR", "/nowhere")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = child.stdin.take().expect("an input");
    // One that reads nothing may have ended.
    let _ = input.write_all(INPUT.as_bytes());
    drop(input);
    child.wait_with_output().expect("it ends")
}

fn ours() -> Command {
    let mut command = Command::new(binary());
    command.arg("php");
    command
}

fn told(output: &Output) -> (Option<i32>, String, String) {
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// Settings that only the files of php-cli have are kept out: -n.
const SAME: &[&[&str]] = &[
    // Scripts, and what they get
    &["-n", "script.php"],
    &["-n", "script.php", "-x", "--", "--y", "z"],
    &["-n", "-f", "script.php"],
    &["-n", "-f", "script.php", "--", "-x"],
    &["-n", "-f", "script.php", "a", "b"],
    &["-nf", "script.php"],
    &["-n", "--file", "script.php"],
    &["-n", "--", "-x"],
    &["-n"],
    &["-n", "tags.php"],
    &["-n", "input.php"],
    &["-n", "-q", "script.php"],
    // Settings
    &["-n", "-d", "precision=5", "script.php"],
    &["-n", "-dprecision=5", "script.php"],
    &["-n", "-d", "precision=5", "-d", "precision=6", "script.php"],
    &["-n", "--define", "precision=5", "script.php"],
    &["-n", "--define=precision=5", "script.php"],
    &[
        "-n",
        "-d",
        "mine",
        "-r",
        "var_dump(ini_get('mine'), get_cfg_var('mine'));",
    ],
    &[
        "-n",
        "-d",
        "mine=a b;c",
        "-r",
        "var_dump(get_cfg_var('mine'));",
    ],
    &["-c", "own.ini", "script.php"],
    &["-c", ".", "-r", "var_dump(php_ini_loaded_file());"],
    &[
        "-n",
        "-r",
        "var_dump(php_ini_loaded_file(), php_ini_scanned_files());",
    ],
    &["-r", "var_dump(ini_get('memory_limit'));"],
    &[
        "-d",
        "memory_limit=64M",
        "-r",
        "var_dump(ini_get('memory_limit'));",
    ],
    // Code
    &["-n", "-r", "var_dump($argv, $argc);", "x", "-y"],
    &["-n", "-r", "var_dump($argv);", "--", "-x", "--"],
    &["-nr", "echo 1;"],
    &["-n", "-r=echo 1;"],
    &["-n", "--run", "echo STDIN ? fgets(STDIN) : '';"],
    &["-n", "-r", "exit(3);"],
    &["-n", "-r", "exit('text');"],
    &["-n", "-r", "throw new Exception('x');"],
    &["-n", "-r", "one two"],
    // Lines
    &[
        "-n",
        "-B",
        "echo 'b';",
        "-R",
        "echo $argi, $argn;",
        "-E",
        "echo 'e', $argi;",
    ],
    &["-n", "-R", "echo strlen($argn), ' ';"],
    &[
        "-n",
        "-R",
        "if ($argi === 2) { exit(4); } echo $argi;",
        "-E",
        "echo 'end';",
    ],
    &["-n", "-R", "one two"],
    &["-n", "-F", "line.php", "-E", "echo 'end';"],
    &["-n", "-E", "echo 'end';"],
    // Syntax
    &["-n", "-l", "script.php"],
    &["-n", "-l", "parse.php"],
    &["-n", "-l", "missing.php"],
    &["-n", "-l"],
    // Exit codes
    &["-n", "exit.php"],
    &["-n", "text.php"],
    &["-n", "fatal.php"],
    &["-n", "parse.php"],
    &["-n", "memory.php"],
    &["-n", "missing.php"],
    &["-n", "-"],
    // Sources
    &["-n", "-s", "script.php"],
    &["-n", "-s"],
    &["-n", "-w", "script.php"],
    &["-n", "-w"],
    // What PHP tells of itself
    &["-n", "--ri", "json"],
    &["-n", "--ri", "JSON"],
    &["-n", "--ri", "nothing"],
    &["-n", "--rf", "strlen"],
    &["-n", "--rf", "DateTime::format"],
    &["-n", "--rf", "nothing"],
    &["-n", "--rc", "ArrayAccess"],
    &["-n", "--rc", "Nothing'\\"],
    &["-n", "--re", "json"],
    &["-n", "--rz", "nothing"],
    // Contradictions
    &["-n", "-r", "echo 1;", "-f", "script.php"],
    &["-n", "-r", "echo 1;", "-l", "script.php"],
    &["-n", "-r", "echo 1;", "-r", "echo 2;"],
    &["-n", "-R", "echo 1;", "-r", "echo 2;"],
    &["-n", "-R", "echo 1;", "-R", "echo 2;"],
    &["-n", "-B", "echo 1;", "-B", "echo 2;"],
    &["-n", "-f", "script.php", "-r", "echo 2;"],
    &["-n", "-f", "script.php", "-f", "script.php"],
    &["-n", "-r", "echo 1;", "-R", "echo 2;"],
    &["-n", "-r", "echo 1;", "-B", "echo 2;"],
];

#[test]
fn it_answers_as_php_cli_does() {
    let folder = folder();
    let mut differences = Vec::new();
    for arguments in SAME {
        let expected = told(&run(Command::new("php8.2"), folder.path(), arguments));
        let got = told(&run(ours(), folder.path(), arguments));
        if got != expected {
            differences.push(format!(
                "{arguments:?}\n  php   {expected:?}\n  surus {got:?}"
            ));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn wrong_usage_is_said_as_php_cli_says_it() {
    let folder = folder();
    for arguments in [
        &["-Q"][..],
        &["-nQ"],
        &["--nothing"],
        &["-r"],
        &["-f"],
        &["-d"],
        &["--define"],
        &["-f", "script.php", "-x"],
    ] {
        let (code, _, why) = told(&run(Command::new("php8.2"), folder.path(), arguments));
        let (our_code, usage, our_why) = told(&run(ours(), folder.path(), arguments));
        assert_eq!((our_code, our_why), (code, why), "{arguments:?}");
        assert!(usage.starts_with("Usage: surus php [options]"), "{usage}");
    }
    for arguments in [["-h"], ["--help"], ["-?"], ["--usage"]] {
        let (code, usage, _) = told(&run(ours(), folder.path(), &arguments));
        assert_eq!(code, Some(0));
        assert!(usage.contains("--rf <name>"), "{usage}");
    }
    for (arguments, part) in [
        (["-a"], "no interactive shell"),
        (["-S=x"], "surus serve --dev"),
        // php-cli reads nothing of it, and says nothing.
        (["."], "Could not open input file: ."),
    ] {
        let (code, text, _) = told(&run(ours(), folder.path(), &arguments));
        assert_eq!(code, Some(1));
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn what_php_tells_of_itself_is_true_of_this_one() {
    let folder = folder();
    let of = |command: Command, switch: &str| {
        let (code, text, errors) = told(&run(command, folder.path(), &["-n", switch]));
        assert_eq!((code, errors.as_str()), (Some(0), ""), "{switch}");
        text
    };
    let both = |switch| (of(Command::new("php8.2"), switch), of(ours(), switch));
    let (theirs, ours) = both("-v");
    assert_eq!(ours, theirs);
    let (theirs, ours) = both("-m");
    let without: Vec<&str> = ours.lines().filter(|line| *line != "surus").collect();
    let own: Vec<&str> = theirs.lines().filter(|line| !ours.contains(line)).collect();
    assert!(
        without.starts_with(&["[PHP Modules]", "bcmath"]) || without.contains(&"Core"),
        "{ours}"
    );
    assert!(
        ours.contains("\n[Zend Modules]\n") && ours.contains("\nsurus\n"),
        "{ours}"
    );
    // Debian builds some into php-cli only.
    assert!(
        own.iter()
            .all(|name| ["readline", "cli_server"].contains(name)),
        "{own:?}"
    );
    let (theirs, ours) = both("-i");
    let first = |text: &str| text.lines().take(2).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(first(&ours), first(&theirs));
    assert!(ours.contains("Server API => Command Line Interface"));
    let (_, ours) = both("--ini");
    assert!(
        ours.contains("Loaded Configuration File:         (none)"),
        "{ours}"
    );
}

/// A suite for Debian's PHPUnit, with tests in processes of their own: those are started as PHP_BINARY says.
#[test]
fn phpunit_runs_in_it() {
    let folder = TempDir::new("phpunit");
    let bin = folder.path().join("surus");
    fs::copy(binary(), &bin).expect("copy the binary");
    let wrapper = folder.file(
        "surus-php",
        &format!("#!/bin/sh\nexec {} php \"$@\"\n", bin.display()),
    );
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).expect("make it a program");
    folder.file(
        "SmallTest.php",
        r#"<?php
use PHPUnit\Framework\Attributes\{DataProvider, RunInSeparateProcess};
use PHPUnit\Framework\TestCase;

final class SmallTest extends TestCase
{
    public function testArithmetic(): void
    {
        $this->assertSame(4, 2 + 2);
    }

    /** @runInSeparateProcess */
    public function testInAProcessOfItsOwn(): void
    {
        $this->assertTrue(extension_loaded('surus'));
        $this->assertSame('cli', PHP_SAPI);
        $this->assertStringEndsWith('/surus-php', PHP_BINARY);
        define('LEFT_BEHIND', getmypid());
    }

    /** @depends testArithmetic */
    public function testNothingIsLeftBehind(): void
    {
        $this->assertFalse(defined('LEFT_BEHIND'));
    }

    /** @dataProvider sums */
    public function testSums(int $a, int $b, int $sum): void
    {
        $this->assertSame($sum, $a + $b);
    }

    public static function sums(): array
    {
        return [[1, 2, 3], [0, 0, 0]];
    }
}
"#,
    );
    folder.file(
        "WrongTest.php",
        "<?php final class WrongTest extends PHPUnit\\Framework\\TestCase { public function testWrong(): void { $this->assertSame(1, 2); } }",
    );
    let phpunit = |file: &str| {
        let output = Command::new(&bin)
            .args([
                "php",
                "-d",
                "memory_limit=256M",
                "/usr/bin/phpunit",
                "--no-configuration",
                "--do-not-cache-result",
            ])
            .arg(folder.path().join(file))
            .current_dir(folder.path())
            .output()
            .expect("it runs");
        let (code, text, errors) = told(&output);
        (code, text + &errors)
    };
    let (code, text) = phpunit("SmallTest.php");
    assert!(
        code == Some(0) && text.contains("OK (5 tests, 7 assertions)"),
        "{text}"
    );
    let (code, text) = phpunit("WrongTest.php");
    assert!(
        code == Some(1) && text.contains("Failed asserting that 2 is identical to 1"),
        "{text}"
    );
}

#[test]
fn a_script_gets_its_arguments_and_sets_the_exit_code() {
    let folder = folder();
    let script =
        "<?php echo implode(',', array_slice($argv, 1)), ' ', ini_get('precision'); exit(7);";
    let script = folder.file("arguments.php", script);
    let script = script.to_str().unwrap();
    let arguments = ["-d", "precision=5", script, "a", "--b=c", "-d"];
    let (code, output, log) = told(&run(ours(), folder.path(), &arguments));
    assert_eq!((code, output.as_str()), (Some(7), "a,--b=c,-d 5"), "{log}");
}

#[test]
fn a_script_has_the_callers_folder_and_standard_streams() {
    let folder = folder();
    let script = "#!/usr/bin/env php\n<?php fwrite(STDOUT, PHP_SAPI . ' '); echo $argc, ' ', $argv[0], ' ', \
                  basename(getcwd()), ' ', isset($_SERVER['REQUEST_METHOD']) ? 'request' : 'command', ' ', \
                  fgets(STDIN); fwrite(STDERR, 'to stderr');";
    folder.file("streams.php", script);
    let caller = folder.folder("elsewhere");
    let (code, output, errors) = told(&run(ours(), &caller, &["../streams.php"]));
    let expected = "cli 1 ../streams.php elsewhere command #!/usr/bin/php\n";
    assert_eq!((code, output.as_str()), (Some(0), expected));
    assert_eq!(errors, "to stderr");
}
