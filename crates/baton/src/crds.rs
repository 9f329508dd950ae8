//! `baton crds`.

use std::io::Write;

use clap::{Args, ValueEnum};

use crate::failure::Failure;

/// What to print.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  baton crds | kubectl apply --server-side -f -")]
pub(crate) struct Arguments {
    /// The form to print them in.
    #[arg(short, long, value_enum, default_value = "yaml")]
    output: Output,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Output {
    Yaml,
    Json,
    Name,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let crds = baton_api::crds();
    let text = match arguments.output {
        Output::Yaml => {
            let mut text = String::new();
            for crd in &crds {
                text.push_str("---\n");
                text.push_str(
                    &serde_saphyr::to_string(crd).map_err(|error| Failure::failed(error.to_string()))?,
                );
            }
            text
        }
        Output::Json => {
            let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": crds});
            serde_json::to_string_pretty(&list).map_err(|error| Failure::failed(error.to_string()))? + "\n"
        }
        Output::Name => crds
            .iter()
            .filter_map(|crd| crd["metadata"]["name"].as_str())
            .map(|name| format!("customresourcedefinition.apiextensions.k8s.io/{name}\n"))
            .collect(),
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        // The reader has seen enough, as `head` has.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        outcome => {
            outcome.map_err(|error| Failure::failed(format!("cannot write to standard output: {error}")))
        }
    }
}
