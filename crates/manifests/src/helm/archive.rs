//! Archives of charts.

use std::collections::BTreeMap;
use std::io::Read;

use bytes::Bytes;
use flate2::read::GzDecoder;
use tar::{Archive, EntryType};

use crate::error::Fault;
use crate::settings::Limits;

/// The files of a chart's archive, by their paths inside the chart.
///
/// # Errors
/// What is no archive, is over a limit, or holds a link or a path that leads out.
pub(crate) fn unpacked(archive: &[u8], limits: &Limits) -> Result<BTreeMap<String, Bytes>, Fault> {
    let odd = |why: &str| Fault::Options(format!("the chart's archive cannot be used: {why}"));
    // Headers count as well, so that no number of them can keep us busy.
    let most = limits.tree_bytes.saturating_mul(2);
    let mut archive = Archive::new(GzDecoder::new(archive).take(most));
    let mut files = BTreeMap::new();
    let mut left = limits.tree_bytes;
    for entry in archive.entries().map_err(|error| odd(&error.to_string()))? {
        let mut entry = entry.map_err(|error| odd(&error.to_string()))?;
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => {}
            EntryType::Directory | EntryType::XGlobalHeader => continue,
            _ => return Err(odd("it holds something else than files and directories")),
        }
        let path = entry.path_bytes();
        let path = std::str::from_utf8(&path).map_err(|_| odd("a path in it is not UTF-8"))?;
        let path = inner_path(path).ok_or_else(|| odd(&format!("{path:?} leads out of the chart")))?;
        if files.len() == limits.tree_files {
            return Err(odd(&format!("it holds more than {} files", limits.tree_files)));
        }
        let mut content = Vec::new();
        entry.by_ref().take(left + 1).read_to_end(&mut content).map_err(|error| odd(&error.to_string()))?;
        left = left
            .checked_sub(content.len() as u64)
            .ok_or_else(|| odd(&format!("it holds more than {} bytes", limits.tree_bytes)))?;
        if content.len() as u64 != entry.size() {
            return Err(odd("it breaks off"));
        }
        files.insert(path, Bytes::from(content));
    }
    if files.contains_key("Chart.yaml") { Ok(files) } else { Err(odd("it holds no Chart.yaml")) }
}

/// A path without the directory all files of a chart are in.
fn inner_path(path: &str) -> Option<String> {
    let mut parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.next()?;
    let parts: Vec<&str> = parts.collect();
    let is_plain = |part: &&str| *part != ".." && !part.contains(['\\', '\0']);
    let stays = !path.starts_with('/') && !path.starts_with("..") && !parts.is_empty();
    (stays && parts.iter().all(is_plain)).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tar::{Builder, Header};

    use super::*;

    fn packed(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
        let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (path, kind, content) in entries {
            let mut header = Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            // Not `set_path`, which refuses what a hostile archive would say.
            let name = &mut header.as_old_mut().name;
            name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_cksum();
            archive.append(&header, *content).expect("appended");
        }
        archive.into_inner().expect("packed").finish().expect("packed")
    }

    const CHART: (&str, EntryType, &[u8]) = ("shop/Chart.yaml", EntryType::Regular, b"name: shop\n");

    #[test]
    fn files_are_found_by_their_paths_inside_the_chart() {
        let packed = packed(&[
            ("shop/", EntryType::Directory, b""),
            CHART,
            ("./shop//templates/a.yaml", EntryType::Regular, b"a"),
        ]);
        let files = unpacked(&packed, &Limits::default()).expect("unpacked");
        let paths: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(paths, ["Chart.yaml", "templates/a.yaml"]);
        assert_eq!(files["templates/a.yaml"], "a");
    }

    #[test]
    fn archives_that_mean_harm_are_refused() {
        let regular = EntryType::Regular;
        let mut limits = Limits::default();
        for (entry, why) in [
            (("shop/../../etc/passwd", regular, &b"x"[..]), "leads out of the chart"),
            (("/etc/passwd", regular, b"x"), "leads out of the chart"),
            (("../passwd", regular, b"x"), "leads out of the chart"),
            (("passwd", regular, b"x"), "leads out of the chart"),
            (("shop/link", EntryType::Symlink, b""), "something else than files"),
            (("shop/device", EntryType::Block, b""), "something else than files"),
        ] {
            let message = unpacked(&packed(&[CHART, entry]), &limits).expect_err(why).to_string();
            assert!(message.contains(why), "{message}");
        }
        let none = packed(&[("shop/values.yaml", regular, b"x")]);
        let message = unpacked(&none, &limits).expect_err("no chart").to_string();
        assert!(message.contains("no Chart.yaml"), "{message}");
        for garbage in [&b""[..], b"garbage", &packed(&[CHART])[..40]] {
            assert!(unpacked(garbage, &limits).is_err());
        }
        limits.tree_files = 1;
        assert!(unpacked(&packed(&[CHART, ("shop/a", regular, b"x")]), &limits).is_err());
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        for _ in 0..64 {
            bomb.write_all(&vec![0; 1 << 20]).expect("packed");
        }
        let limits = Limits { tree_bytes: 1 << 20, ..Limits::default() };
        assert!(unpacked(&bomb.finish().expect("packed"), &limits).is_err());
        let large = packed(&[CHART, ("shop/large", EntryType::Regular, &vec![b'x'; 2 << 20])]);
        let message = unpacked(&large, &limits).expect_err("too large").to_string();
        assert!(message.contains("more than 1048576 bytes"), "{message}");
    }
}
