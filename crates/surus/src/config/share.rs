//! A part of the machine's memory.

use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use super::units::Size;

/// `"50%"` of the memory that the machine or the cgroup has, or a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    Percent(u8),
    Bytes(Size),
}

impl Share {
    pub(super) const EXPECTED: &'static str =
        "a share from \"1%\" to \"100%\" of the memory, or a size such as \"2G\"";

    pub(crate) fn bytes(self) -> u64 {
        match self {
            Share::Percent(percent) => memory(Path::new("/")) / 100 * u64::from(percent),
            Share::Bytes(size) => size.0,
        }
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not {}", Self::EXPECTED);
        match text.trim().strip_suffix('%') {
            Some(number) => match number.trim_end().parse() {
                Ok(percent) if (1..=100).contains(&percent) => Ok(Share::Percent(percent)),
                _ => Err(wrong()),
            },
            None => match text.parse::<Size>() {
                Ok(size) if size.0 >= 1 << 20 => Ok(Share::Bytes(size)),
                Ok(Size(number)) if (1..=100).contains(&number) => {
                    Err(format!("{}; is \"{number}%\" meant?", wrong()))
                }
                _ => Err(wrong()),
            },
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Share::Percent(percent) => write!(f, "{percent}%"),
            Share::Bytes(size) => size.fmt(f),
        }
    }
}

/// Bytes that the machine has, or fewer if a cgroup of this process says so (its versions 1 and 2; see
/// cgroups(7) and the kernel's Documentation/admin-guide/cgroup-v2.rst). If neither can be read, no limit.
fn memory(root: &Path) -> u64 {
    let machine = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let machine = machine.lines().find_map(|line| {
        let kilobytes = line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?;
        Some(kilobytes.trim().parse::<u64>().ok()? << 10)
    });
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let (folder, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let top = root.join(folder);
        // Limits of outer groups apply as well. In a container, the path may not be there: its own group is the top.
        let own = top.join(path.trim_start_matches('/'));
        own.ancestors()
            .take_while(|group| group.starts_with(&top))
            .filter_map(|group| {
                fs::read_to_string(group.join(file))
                    .ok()?
                    .trim()
                    .parse()
                    .ok()
            })
            .min()
    });
    limits.chain(machine).min().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_written_with_percent_and_a_size_with_its_unit() {
        assert_eq!("50%".parse(), Ok(Share::Percent(50)));
        assert_eq!("2G".parse(), Ok(Share::Bytes(Size(2 << 30))));
        for text in ["50%", "1%", "100%", "512M"] {
            assert_eq!(
                text.parse::<Share>().map(|share| share.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in ["0%", "101%", "-5%", "x%", "%", "1K", "0", "half", ""] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
        let error = "50".parse::<Share>().expect_err("no unit");
        assert!(error.ends_with("is \"50%\" meant?"), "{error}");
    }

    /// The memory of a machine with these files.
    fn of(name: &str, files: &[(&str, &str)]) -> u64 {
        let name = format!("surus-memory-{}-{name}", std::process::id());
        let root = std::env::temp_dir().join(name);
        for (file, text) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(path, text).expect("a file");
        }
        let bytes = memory(&root);
        let _ = fs::remove_dir_all(&root);
        bytes
    }

    #[test]
    fn the_smallest_limit_counts() {
        let machine = ("proc/meminfo", "MemTotal:        2048 kB\nMemFree: 1 kB\n");
        assert_eq!(of("none", &[]), u64::MAX);
        assert_eq!(of("machine", &[machine]), 2 << 20);
        let group = ("proc/self/cgroup", "0::/system.slice/surus.service\n");
        let own = (
            "sys/fs/cgroup/system.slice/surus.service/memory.max",
            "max\n",
        );
        let outer = ("sys/fs/cgroup/system.slice/memory.max", "1048576\n");
        assert_eq!(of("own", &[machine, group, own]), 2 << 20);
        assert_eq!(of("outer", &[machine, group, own, outer]), 1 << 20);
        // In a container the group's own files are at the top.
        let top = ("sys/fs/cgroup/memory.max", "1000\n");
        assert_eq!(of("top", &[machine, group, top]), 1000);
        let old = ("proc/self/cgroup", "4:cpu,memory:/a\n1:name=systemd:/\n");
        let limit = ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096\n");
        assert_eq!(of("old", &[machine, old, limit]), 4096);
    }
}
