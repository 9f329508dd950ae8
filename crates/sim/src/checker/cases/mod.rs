//! Histories written by hand: for each invariant one that keeps it and some that break it.

mod approval;
mod budget;
mod deletion;
mod failures;
mod held;
mod hooks;
mod order;
mod passed;
mod phased;
mod progress;
mod rollback;
mod story;

/// The judge must share no thought with what it judges.
#[test]
fn the_judge_asks_nothing_of_the_product() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/checker");
    let mut read = 0;
    for file in std::fs::read_dir(directory).expect("the sources") {
        let path = file.expect("an entry").path();
        if path.is_file() {
            let text = std::fs::read_to_string(&path).expect("a source");
            assert!(!text.contains("baton_"), "{} uses a crate of the product", path.display());
            read += 1;
        }
    }
    assert!(read > 5, "only {read} sources were read");
}
