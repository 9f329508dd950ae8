//! `baton migrate check`.

use clap::{Args, ValueEnum};

use super::finding::{Finding, Weight};
use super::installation::Installation;
use super::{controller, definitions, rights, sets};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::listing::{Column, table};
use crate::print;

/// What to look at.
#[derive(Debug, Args)]
#[command(after_help = "Only reads. What may not be read is told, and the rest is judged all the same.
Each finding blocks (it will not work until something is done), differs (it works, and otherwise than before), or is a note.
Exit code 4 if anything blocks or differs.

Examples:
  baton migrate check --kubeconfig ~/.kube/config
  baton migrate check --namespace argocd -o json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// How to print findings.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let namespace = super::namespace(&arguments.connection)?;
    let client = arguments.connection.client().await?;
    let installation = Installation::read(&client, namespace).await?;
    let findings = judge(&installation);
    print::out(&match arguments.output {
        Output::Text if findings.is_empty() => "Nothing will be different.\n".to_owned(),
        Output::Text => {
            let columns: [Column<Finding>; 4] = [
                Column::new("WEIGHT", |finding| finding.weight.word().to_owned()),
                Column::new("OBJECT", |finding| finding.object.clone()),
                Column::new("RULE", |finding| finding.rule.to_owned()),
                Column::new("WHAT", |finding| finding.message.clone()),
            ];
            table(&columns, &findings, false)
        }
        Output::Json => {
            serde_json::to_string_pretty(&findings).map_err(|error| Failure::failed(error.to_string()))?
                + "\n"
        }
    })?;
    match counted(&findings) {
        None => Ok(()),
        Some(count) => Err(Failure::finding(count)),
    }
}

/// Everything that will be different, the gravest first.
fn judge(installation: &Installation) -> Vec<Finding> {
    let unread = installation.unread.iter().map(|(object, why)| {
        let message = format!("could not be looked at: {why}");
        Finding::new(Weight::Differs, object.as_str(), "unread", message)
    });
    let mut findings: Vec<Finding> = unread.collect();
    let settings = controller::settings(installation);
    findings.extend(settings.findings.iter().cloned());
    findings.extend(definitions::judge(installation));
    findings.extend(rights::judge(installation, &settings));
    findings.extend(sets::judge(installation, &settings));
    findings.sort();
    findings.dedup();
    findings
}

/// How many findings there are that say that something is different; none if there is none.
fn counted(findings: &[Finding]) -> Option<String> {
    let of = |weight: Weight| findings.iter().filter(|finding| finding.weight == weight).count();
    match (of(Weight::Blocks), of(Weight::Differs)) {
        (0, 0) => None,
        (blocks, differs) => Some(format!("{blocks} blocking, {differs} different")),
    }
}
