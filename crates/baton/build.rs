//! Puts the web pages into the binary: those of `ui/dist` where somebody has built them (`make ui`), none elsewhere, so
//! that the crate builds on a machine without Node.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let pages = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../ui/dist");
    let mut files = Vec::new();
    // A folder that is not there would count as changed each time; `make ui` touches this file instead.
    if pages.join("index.html").is_file() {
        println!("cargo::rerun-if-changed={}", pages.display());
        collect(&pages, &mut files)?;
        files.sort();
    }
    let mut table = String::from("&[\n");
    for file in &files {
        let inner = file.strip_prefix(&pages)?.to_str().ok_or("a page has a name that is no text")?;
        let whole = file.canonicalize()?;
        let whole = whole.to_str().ok_or("the pages are in a folder whose name is no text")?;
        writeln!(table, "    ({:?}, include_bytes!({whole:?})),", format!("/{inner}"))?;
    }
    table.push_str("]\n");
    std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join("pages.rs"), table)?;
    Ok(())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
