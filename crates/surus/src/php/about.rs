//! Information about PHP on the command line: PHP code that prints the same as php-cli.

pub(super) const USAGE: &str = "\
Usage: surus php [options] [-f] <file> [--] [args...]
   surus php [options] -r <code> [--] [args...]
   surus php [options] [-B <begin_code>] -R <code> [-E <end_code>] [--] [args...]
   surus php [options] [-B <begin_code>] -F <file> [-E <end_code>] [--] [args...]
   surus php [options] -- [args...]

  -c <path>|<file> Look for php.ini file in this directory
  -n               No configuration (ini) files will be used
  -d foo[=bar]     Define INI entry foo with value 'bar'
  -f <file>        Parse and execute <file>
  -h               This help
  -i               PHP information
  -l               Syntax check only (lint)
  -m               Show compiled in modules
  -r <code>        Run PHP <code> without using script tags <?..?>
  -B <begin_code>  Run PHP <begin_code> before processing input lines
  -R <code>        Run PHP <code> for every input line
  -F <file>        Parse and execute <file> for every input line
  -E <end_code>    Run PHP <end_code> after processing all input lines
  -s               Output HTML syntax highlighted source
  -v               Version number
  -w               Output source with stripped comments and whitespace
  -z <file>        Load Zend extension <file>

  args...          Arguments passed to script. Use -- args when first argument
                   starts with - or script is read from stdin

  --ini            Show configuration file names
  --rf <name>      Show information about function <name>
  --rc <name>      Show information about class <name>
  --re <name>      Show information about extension <name>
  --rz <name>      Show information about Zend extension <name>
  --ri <name>      Show configuration for extension <name>
";

/// The requested information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum About {
    Usage,
    Version,
    Info,
    Modules,
    Ini,
    /// One of php-cli's `--r…` switches, with a name.
    Reflection(Kind, Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Function,
    Class,
    Extension,
    ZendExtension,
    Settings,
}

/// How to show a source that is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Highlighted,
    Stripped,
}

const VERSION: &str = r#"
ob_start();
phpinfo(INFO_GENERAL);
preg_match('/^Build Date => (.*)$/m', ob_get_clean(), $built);
echo 'PHP ', PHP_VERSION, ' (', PHP_SAPI, ') (built: ', $built[1] ?? '', ') (', PHP_ZTS ? 'ZTS' : 'NTS', PHP_DEBUG ? ' DEBUG' : '', ")\n";
echo "Copyright (c) The PHP Group\n";
echo 'Zend Engine v', zend_version(), ", Copyright (c) Zend Technologies\n";
foreach (get_loaded_extensions(true) as $name) {
    $extension = new ReflectionZendExtension($name);
    echo "    with $name v", $extension->getVersion(), ', ', $extension->getCopyright(), ', by ', $extension->getAuthor(), "\n";
}
"#;

const MODULES: &str = r#"
foreach (['PHP' => false, 'Zend' => true] as $kind => $zend) {
    $names = get_loaded_extensions($zend);
    usort($names, strcasecmp(...));
    echo "[$kind Modules]\n", implode('', array_map(fn ($name) => "$name\n", $names)), "\n";
}
"#;

const INI: &str = r#"
echo 'Configuration File (php.ini) Path: ', PHP_CONFIG_FILE_PATH, "\n";
echo 'Loaded Configuration File:         ', php_ini_loaded_file() ?: '(none)', "\n";
echo 'Scan for additional .ini files in: ', PHP_CONFIG_FILE_SCAN_DIR ?: '(none)', "\n";
echo 'Additional .ini files parsed:      ', php_ini_scanned_files() ?: '(none)', "\n";
"#;

impl About {
    /// From php-cli's switches with a name.
    pub(super) fn reflection(letter: char, name: &[u8]) -> Self {
        let kind = match letter {
            '1' => Kind::Function,
            '2' => Kind::Class,
            '3' => Kind::Extension,
            '4' => Kind::ZendExtension,
            _ => Kind::Settings,
        };
        About::Reflection(kind, name.to_vec())
    }

    /// The PHP code that prints it.
    pub(super) fn code(&self) -> Vec<u8> {
        match self {
            About::Usage => Vec::new(),
            About::Version => VERSION.into(),
            About::Info => "phpinfo();".into(),
            About::Modules => MODULES.into(),
            About::Ini => INI.into(),
            About::Reflection(Kind::Settings, name) => with(
                name,
                r#"if (extension_loaded($name)) { (new ReflectionExtension($name))->info(); }
                else { echo "Extension '$name' not present.\n"; exit(1); }"#,
            ),
            About::Reflection(kind, name) => {
                let class = match kind {
                    Kind::Function if name.windows(2).any(|it| it == b"::") => "ReflectionMethod",
                    Kind::Function => "ReflectionFunction",
                    Kind::Class => "ReflectionClass",
                    Kind::Extension => "ReflectionExtension",
                    Kind::ZendExtension | Kind::Settings => "ReflectionZendExtension",
                };
                let code = format!(
                    r#"try {{ echo new {class}($name), "\n"; }}
                    catch (ReflectionException $e) {{ echo 'Exception: ', $e->getMessage(), "\n"; exit(1); }}"#
                );
                with(name, &code)
            }
        }
    }
}

/// PHP code that shows a source, from a file or standard input. A first line that names the interpreter is left out.
pub(super) fn shown(shown: Shown, path: &[u8]) -> Vec<u8> {
    let code = match shown {
        Shown::Highlighted => {
            "highlight_string(preg_replace('/^#!.*\\R/', '', file_get_contents($name)));"
        }
        Shown::Stripped => {
            "$file = tmpfile();
            fwrite($file, file_get_contents($name));
            echo php_strip_whitespace(stream_get_meta_data($file)['uri']);"
        }
    };
    with(path, code)
}

/// PHP code in which `$name` has this value.
fn with(name: &[u8], code: &str) -> Vec<u8> {
    let mut all = b"$name = '".to_vec();
    for &byte in name {
        if matches!(byte, b'\'' | b'\\') {
            all.push(b'\\');
        }
        all.push(byte);
    }
    all.extend_from_slice(b"';\n");
    all.extend_from_slice(code.as_bytes());
    all
}
