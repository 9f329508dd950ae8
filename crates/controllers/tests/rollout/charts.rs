//! A repository of charts that answers over a real socket, and a clock that leaves it the time to.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use parking_lot::Mutex;
use serde_json::json;

/// The one chart of the repository.
pub(crate) const CHART: &str = "shop";

/// What a path answers with.
type Files = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// A repository with versions of one chart. It answers until the process ends.
pub(crate) struct Charts {
    pub(crate) url: String,
    files: Files,
    versions: Mutex<Vec<String>>,
}

impl Charts {
    pub(crate) fn start() -> Charts {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let files = Files::default();
        let served = files.clone();
        std::thread::spawn(move || listener.incoming().flatten().for_each(|asker| answer(asker, &served)));
        Charts { url, files, versions: Mutex::default() }
    }

    /// Adds a version whose templates are these.
    pub(crate) fn release(&self, version: &str, templates: &[(&str, &str)]) {
        let mut versions = self.versions.lock();
        versions.push(version.to_owned());
        let release =
            |version: &String| json!({"name": CHART, "version": version, "urls": [archive_of(version)]});
        let releases: Vec<_> = versions.iter().map(release).collect();
        let index = json!({"apiVersion": "v1", "entries": {CHART: releases}});
        let mut files = self.files.lock();
        files.insert(format!("/{}", archive_of(version)), packed(version, templates));
        files.insert("/index.yaml".to_owned(), index.to_string().into());
    }
}

fn archive_of(version: &str) -> String {
    format!("{CHART}-{version}.tgz")
}

fn packed(version: &str, templates: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let chart = format!("apiVersion: v2\nname: {CHART}\nversion: {version}\n");
    let about = ("Chart.yaml".to_owned(), chart.as_str());
    let templates = templates.iter().map(|(name, content)| (format!("templates/{name}"), *content));
    for (path, content) in std::iter::once(about).chain(templates) {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, format!("{CHART}/{path}"), content.as_bytes()).expect("packed");
    }
    archive.into_inner().expect("packed").finish().expect("packed")
}

fn answer(mut asker: TcpStream, files: &Files) {
    let mut lines = BufReader::new(&asker).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    // The rest says nothing that matters here.
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    let content = files.lock().get(first.split(' ').nth(1).unwrap_or_default()).cloned();
    let status = if content.is_some() { "200 OK" } else { "404 Not Found" };
    let content = content.unwrap_or_default();
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", content.len());
    // Whoever has gone away asks again.
    let _ = asker.write_all(head.as_bytes()).and_then(|()| asker.write_all(&content));
}

/// Lets a paused clock go on by small steps, with time between them for an answer over a socket: left alone it is at the
/// end of a request's patience before the answer is there.
pub(crate) async fn pace() {
    loop {
        let breath = || std::thread::sleep(Duration::from_millis(1));
        tokio::task::spawn_blocking(breath).await.expect("a breath is taken");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The real program: of this machine, or as `make tools` builds it.
pub(crate) fn helm() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/bin");
    let mut places = std::env::split_paths(&path).chain([built]).map(|directory| directory.join("helm"));
    places.find(|place| place.is_file()).unwrap_or_else(|| "helm".into())
}
