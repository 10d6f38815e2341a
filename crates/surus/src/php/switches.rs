//! Parses php-cli's switches as its getopt does: up to the first argument that is not a switch, or `--`.

use super::about::{About, Shown};

/// What to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// A file, or standard input.
    #[default]
    File,
    /// `-l`
    Lint,
    /// `-r`
    Code(Vec<u8>),
    /// `-B`, `-R` (or `-F` with a file), `-E`
    Lines {
        begin: Option<Vec<u8>>,
        each: Option<Vec<u8>>,
        end: Option<Vec<u8>>,
    },
    /// `-s`, `-w`
    Shown(Shown),
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Switches {
    pub(super) defines: Vec<Vec<u8>>,
    pub(super) zend_extensions: Vec<Vec<u8>>,
    pub(super) ini_path: Option<Vec<u8>>,
    pub(super) no_ini: bool,
    pub(super) lint: bool,
    pub(super) about: Option<About>,
    pub(super) mode: Mode,
    pub(super) file: Option<Vec<u8>>,
    /// The arguments after the file's name, or after the switches if there is no file.
    pub(super) arguments: Vec<Vec<u8>>,
}

/// An error in the command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// Printed together with the usage.
    Usage(String),
    Said(String),
}

/// The letters; a colon follows those that take a value.
const SHORT: &str = "a c: C d: e E: f: F: h i l m n q r: R: H s t: S: v w z: B: ?";

/// Long names and their letters; digits for those without a letter.
const LONG: &[(&str, char)] = &[
    ("interactive", 'a'),
    ("no-chdir", 'C'),
    ("define", 'd'),
    ("profile-info", 'e'),
    ("process-end", 'E'),
    ("file", 'f'),
    ("process-file", 'F'),
    ("help", 'h'),
    ("info", 'i'),
    ("syntax-check", 'l'),
    ("modules", 'm'),
    ("no-php-ini", 'n'),
    ("no-header", 'q'),
    ("php-ini", 'c'),
    ("process-begin", 'B'),
    ("run", 'r'),
    ("process-code", 'R'),
    ("hide-args", 'H'),
    ("syntax-highlight", 's'),
    ("syntax-highlighting", 's'),
    ("docroot", 't'),
    ("server", 'S'),
    ("strip", 'w'),
    ("usage", '?'),
    ("version", 'v'),
    ("zend-extension", 'z'),
    ("rf", '1'),
    ("rfunction", '1'),
    ("rc", '2'),
    ("rclass", '2'),
    ("re", '3'),
    ("rextension", '3'),
    ("rz", '4'),
    ("rzendextension", '4'),
    ("ri", '5'),
    ("rextinfo", '5'),
    ("ini", '6'),
];

fn takes_value(letter: char) -> bool {
    matches!(letter, '1'..='5')
        || SHORT
            .split(' ')
            .any(|it| it.len() == 2 && it.starts_with(letter))
}

/// One switch and its value.
type Switch = (char, Vec<u8>);

/// The switches in `arguments`, how many arguments they take up, and whether they end with `--`.
fn split(arguments: &[Vec<u8>]) -> Result<(Vec<Switch>, usize, bool), Wrong> {
    let mut found = Vec::new();
    let mut at = 0;
    let wrong = |at: usize, char: usize, why: String| {
        let number = at + 1;
        Wrong::Usage(format!("Error in argument {number}, char {char}: {why}"))
    };
    while let Some(argument) = arguments.get(at) {
        if argument == b"--" {
            return Ok((found, at + 1, true));
        }
        let Some(rest) = argument.strip_prefix(b"-").filter(|rest| !rest.is_empty()) else {
            break;
        };
        // The switches in this argument, with their values.
        let mut letters: Vec<(char, Option<&[u8]>)> = Vec::new();
        let is_long = rest.starts_with(b"-");
        if let Some(long) = rest.strip_prefix(b"-") {
            let end = long.iter().position(|&b| b == b'=');
            let name = &long[..end.unwrap_or(long.len())];
            let known = LONG.iter().find(|(it, _)| it.as_bytes() == name);
            let none = || wrong(at, 1, "no argument for option -".to_owned());
            let letter = known.ok_or_else(none)?.1;
            letters.push((letter, end.map(|end| &long[end + 1..])));
        } else {
            for (index, &byte) in rest.iter().enumerate() {
                let letter = char::from(byte);
                if !SHORT.split(' ').any(|it| it.starts_with(letter)) {
                    let why = format!("option not found {letter}");
                    return Err(wrong(at, index + 2, why));
                }
                if takes_value(letter) {
                    let value = &rest[index + 1..];
                    let value = value.strip_prefix(b"=").unwrap_or(value);
                    letters.push((letter, (rest.len() > index + 1).then_some(value)));
                    break;
                }
                letters.push((letter, None));
            }
        }
        for (letter, value) in letters {
            let value = match (takes_value(letter), value) {
                (false, _) => Vec::new(),
                (true, Some(value)) => value.to_vec(),
                (true, None) => {
                    at += 1;
                    let next = arguments.get(at).cloned();
                    let (char, shown) = match is_long {
                        true => (1, '-'),
                        false => (2, letter),
                    };
                    let why = || wrong(at - 1, char, format!("no argument for option {shown}"));
                    next.ok_or_else(why)?
                }
            };
            found.push((letter, value));
        }
        at += 1;
    }
    Ok((found, at, false))
}

impl Switches {
    pub(super) fn parse(arguments: Vec<Vec<u8>>) -> Result<Self, Wrong> {
        let (found, used, ended) = split(&arguments)?;
        let mut switches = Switches::default();
        for (letter, value) in found {
            switches.add(letter, value)?;
        }
        let mut rest = arguments.into_iter().skip(used).peekable();
        let wants_file = switches.file.is_none() && !ended;
        let has_code = matches!(switches.mode, Mode::Code(_) | Mode::Lines { .. });
        if wants_file && !has_code && switches.about.is_none() {
            switches.file = rest.next();
        }
        // If a switch names the file, a `--` may precede its arguments.
        if !ended
            && (switches.file.is_some() && !wants_file)
            && rest.peek().is_some_and(|it| it == b"--")
        {
            rest.next();
        }
        switches.arguments = rest.collect();
        Ok(switches)
    }

    fn add(&mut self, letter: char, value: Vec<u8>) -> Result<(), Wrong> {
        let conflict =
            || Wrong::Said("Either execute direct code, process stdin or use a file.".to_owned());
        let once = |switch| Err(Wrong::Said(format!("You can use {switch} only once.")));
        let is_code = matches!(self.mode, Mode::Code(_));
        match letter {
            'd' => self.defines.push(value),
            'z' => self.zend_extensions.push(value),
            'c' => self.ini_path = Some(value),
            'n' => self.no_ini = true,
            'h' | '?' => self.tell(About::Usage),
            'v' => self.tell(About::Version),
            'i' => self.tell(About::Info),
            'm' => self.tell(About::Modules),
            '6' => self.tell(About::Ini),
            '1'..='5' => self.tell(About::reflection(letter, &value)),
            'l' if self.mode == Mode::File => {
                self.mode = Mode::Lint;
                self.lint = true;
            }
            's' if self.mode == Mode::File => self.mode = Mode::Shown(Shown::Highlighted),
            'w' if self.mode == Mode::File => self.mode = Mode::Shown(Shown::Stripped),
            'r' if is_code => return once("-r"),
            'r' if self.mode == Mode::File => self.mode = Mode::Code(value),
            'r' => return Err(conflict()),
            'f' if self.mode != Mode::File => return Err(conflict()),
            'f' if self.file.is_some() => return once("-f"),
            'f' => self.file = Some(value),
            'B' | 'R' | 'F' | 'E' => {
                if self.mode == Mode::File {
                    self.mode = Mode::Lines {
                        begin: None,
                        each: None,
                        end: None,
                    };
                }
                let Mode::Lines { begin, each, end } = &mut self.mode else {
                    return Err(conflict());
                };
                let again = match letter {
                    'B' => begin.replace(value).map(|_| "-B"),
                    'E' => end.replace(value).map(|_| "-E"),
                    _ if each.is_some() || self.file.is_some() => Some("-R or -F"),
                    'R' => each.replace(value).map(|_| ""),
                    _ => self.file.replace(value).map(|_| ""),
                };
                if let Some(switch) = again {
                    return once(switch);
                }
            }
            'a' => {
                return Err(Wrong::Said(
                    "there is no interactive shell here: use -r, or standard input".to_owned(),
                ))
            }
            'S' | 't' => {
                return Err(Wrong::Said(
                    "`surus serve --dev` is the server for development".to_owned(),
                ))
            }
            // Switches for other programs than php-cli, or that are the default here anyway.
            _ => {}
        }
        Ok(())
    }

    /// The first one counts.
    fn tell(&mut self, about: About) {
        self.about.get_or_insert(about);
    }
}
