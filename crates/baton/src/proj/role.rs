//! `baton proj role`: roles of a project, their policies, groups and tokens.

use std::time::Duration;

use baton_api::AppProject;
use baton_api::project::{AppProjectSpec, JwtToken, ProjectRole};
use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::desk::{Outcome, edit};
use super::say;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::listing::{self, Column, Listing};
use crate::place::Place;
use crate::print::{self, Form};
use crate::terminal;

/// What to do.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the roles of a project.
    #[command(after_help = "Examples:\n  baton proj role list shop")]
    List(List),
    /// Show one role: its policies, groups and tokens.
    #[command(after_help = "Examples:\n  baton proj role get shop deployer")]
    Get(Get),
    /// Create a role.
    #[command(
        after_help = "Examples:\n  baton proj role create shop deployer --description 'CI deploys with it'"
    )]
    Create(Create),
    /// Delete a role, and its tokens with it.
    #[command(after_help = "Examples:\n  baton proj role delete shop deployer")]
    Delete(One),
    /// Let the holders of a role do something.
    #[command(after_help = "Examples:
  baton proj role add-policy shop deployer -a sync -o '*'
  baton proj role add-policy shop deployer -a delete -o 'web-*' -p deny")]
    AddPolicy(Policy),
    /// Take a policy off a role.
    #[command(after_help = "Examples:\n  baton proj role remove-policy shop deployer -a sync -o '*'")]
    RemovePolicy(Policy),
    /// Give a role to a group of the issuer.
    #[command(after_help = "Examples:\n  baton proj role add-group shop deployer shop-team")]
    AddGroup(Group),
    /// Take a role away from a group of the issuer.
    #[command(after_help = "Examples:\n  baton proj role remove-group shop deployer shop-team")]
    RemoveGroup(Group),
    /// List the tokens of a role.
    #[command(after_help = "Examples:\n  baton proj role list-tokens shop deployer")]
    ListTokens(ListTokens),
    /// Make a token of a role. It is shown once.
    #[command(after_help = "Examples:
  baton proj role create-token shop deployer --expires-in 24h
  ARGOCD_AUTH_TOKEN=$(baton proj role create-token shop deployer --token-only --id ci)")]
    CreateToken(CreateToken),
    /// Revoke a token of a role.
    #[command(after_help = "Examples:
  baton proj role list-tokens shop deployer
  baton proj role delete-token shop deployer 1767225600")]
    DeleteToken(DeleteToken),
}

#[derive(Debug, Args)]
struct List {
    /// The project.
    project: String,
    /// How to print them.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct Get {
    /// The project.
    project: String,
    /// The role.
    role: String,
    /// How to print it.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct Create {
    /// The project.
    project: String,
    /// The role.
    role: String,
    /// What it is for.
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct One {
    /// The project.
    project: String,
    /// The role.
    role: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct Policy {
    /// The project.
    project: String,
    /// The role.
    role: String,
    /// What may be done, as `sync`.
    #[arg(short, long)]
    action: String,
    /// With what inside the project, a glob, as `web-*`.
    #[arg(short, long)]
    object: String,
    /// Whether it may.
    #[arg(short, long = "permission", value_enum, default_value_t = Permission::Allow)]
    permission: Permission,
    /// With which kind of thing.
    #[arg(long, default_value = "applications")]
    resource: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Permission {
    Allow,
    Deny,
}

#[derive(Debug, Args)]
struct Group {
    /// The project.
    project: String,
    /// The role.
    role: String,
    /// The group, as the issuer names it.
    group: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct ListTokens {
    /// The project.
    project: String,
    /// The role.
    role: String,
    /// Show when tokens were issued and end in seconds since 1970.
    #[arg(short, long)]
    unixtime: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct CreateToken {
    /// The project.
    project: String,
    /// The role.
    role: String,
    /// For how long it counts, as `24h`; without it for ever.
    #[arg(short, long, value_name = "DURATION", value_parser = crate::app::duration)]
    expires_in: Option<Duration>,
    /// Its name; one is made up without it.
    #[arg(short, long, value_name = "NAME", default_value = "")]
    id: String,
    /// Print the token and nothing else.
    #[arg(short, long)]
    token_only: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct DeleteToken {
    /// The project.
    project: String,
    /// The role.
    role: String,
    /// When it was issued, in seconds since 1970.
    issued_at: i64,
    #[command(flatten)]
    place: Place,
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::List(arguments) => arguments.run().await,
        Command::Get(arguments) => arguments.run().await,
        Command::Create(arguments) => arguments.run().await,
        Command::Delete(arguments) => arguments.delete().await,
        Command::AddPolicy(arguments) => arguments.change(true).await,
        Command::RemovePolicy(arguments) => arguments.change(false).await,
        Command::AddGroup(arguments) => arguments.change(true).await,
        Command::RemoveGroup(arguments) => arguments.change(false).await,
        Command::ListTokens(arguments) => arguments.run().await,
        Command::CreateToken(arguments) => arguments.run().await,
        Command::DeleteToken(arguments) => arguments.run().await,
    }
}

/// What a table shows of roles.
const COLUMNS: &[Column<ProjectRole>] = &[
    Column::new("ROLE-NAME", |role| role.name.clone()),
    Column::new("DESCRIPTION", |role| role.description.clone()),
    Column::wide("POLICIES", |role| role.policies.len().to_string()),
    Column::wide("GROUPS", |role| role.groups.join(",")),
    Column::wide("TOKENS", |role| role.jwt_tokens.len().to_string()),
];

const LISTING: Listing<'_, ProjectRole> = Listing {
    columns: COLUMNS,
    whole: |role| json!(role),
    name: |role| role.name.clone(),
    nothing: "The project has no roles.",
};

impl List {
    async fn run(self) -> Result<(), Failure> {
        let roles = read(&self.place, &self.project).await?.spec.roles;
        LISTING.print(&roles, self.output)
    }
}

impl Get {
    async fn run(self) -> Result<(), Failure> {
        let project = read(&self.place, &self.project).await?;
        let tokens = tokens_of(&project, &self.role);
        let roles = project.spec.roles;
        let role = roles.into_iter().find(|role| role.name == self.role);
        let role = role.ok_or_else(|| missing(&self.project, &self.role))?;
        LISTING.print_one(role, self.output, |role, _| described(role, &tokens))
    }
}

fn described(role: &ProjectRole, tokens: &[JwtToken]) -> String {
    let mut text = format!("Role Name:   {}\nDescription: {}\n", role.name, role.description);
    text.push_str("Policies:\n");
    role.policies.iter().for_each(|policy| text.push_str(&format!("  {policy}\n")));
    text.push_str("Groups:\n");
    role.groups.iter().for_each(|group| text.push_str(&format!("  {group}\n")));
    text.push_str("Tokens:\n");
    if !tokens.is_empty() {
        text.push_str(&listing::table(TOKENS, tokens, false));
    }
    text
}

impl Create {
    async fn run(self) -> Result<(), Failure> {
        if self.role.is_empty()
            || !self.role.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        {
            return Err(Failure::usage(format!(
                "{:?} is no name of a role: letters, digits, - _ and . are",
                self.role
            )));
        }
        let change = |spec: &mut AppProjectSpec| {
            if !spec.roles.iter().any(|role| role.name == self.role) {
                let (name, description) = (self.role.clone(), self.description.clone());
                spec.roles.push(ProjectRole { name, description, ..ProjectRole::default() });
            }
            Ok(())
        };
        let outcome = edit(&self.place, &self.project, change).await?;
        let already = format!("it has a role {} already", self.role);
        say(&self.project, outcome, &format!("role {} created", self.role), &already)
    }
}

impl One {
    async fn delete(self) -> Result<(), Failure> {
        let change = |spec: &mut AppProjectSpec| {
            let before = spec.roles.len();
            spec.roles.retain(|role| role.name != self.role);
            match spec.roles.len() == before {
                true => Err(missing(&self.project, &self.role)),
                false => Ok(()),
            }
        };
        let outcome = edit(&self.place, &self.project, change).await?;
        say(&self.project, outcome, &format!("role {} deleted", self.role), "it had no such role")
    }
}

impl Policy {
    fn line(&self) -> String {
        let permission = match self.permission {
            Permission::Allow => "allow",
            Permission::Deny => "deny",
        };
        let Policy { project, role, action, object, resource, .. } = self;
        format!("p, proj:{project}:{role}, {resource}, {action}, {project}/{object}, {permission}")
    }

    async fn change(self, adds: bool) -> Result<(), Failure> {
        if [&self.action, &self.object, &self.resource].iter().any(|word| word.contains([',', '\n', '"'])) {
            return Err(Failure::usage("a word of a policy has no comma, no quote and is one line"));
        }
        let line = self.line();
        let same = |known: &String| words(known) == words(&line);
        let outcome = of_role(&self.place, &self.project, &self.role, |role| match adds {
            true if role.policies.iter().any(same) => {}
            true => role.policies.push(line.clone()),
            false => role.policies.retain(|known| !same(known)),
        })
        .await?;
        match adds {
            true => {
                say(&self.project, outcome, &format!("role {} may: {line}", self.role), "the role has it")
            }
            false => {
                say(&self.project, outcome, &format!("role {} lost: {line}", self.role), "the role lacks it")
            }
        }
    }
}

/// The words of a policy, which may stand apart more or less.
fn words(policy: &str) -> Vec<&str> {
    policy.split(',').map(str::trim).collect()
}

impl Group {
    async fn change(self, adds: bool) -> Result<(), Failure> {
        let outcome = of_role(&self.place, &self.project, &self.role, |role| {
            let known = role.groups.contains(&self.group);
            match adds {
                true if known => {}
                true => role.groups.push(self.group.clone()),
                false => role.groups.retain(|group| *group != self.group),
            }
        })
        .await?;
        let done = if adds { "given to" } else { "taken from" };
        let already = if adds { "the group holds it" } else { "the group does not hold it" };
        say(&self.project, outcome, &format!("role {} {done} {}", self.role, self.group), already)
    }
}

/// What a table shows of tokens.
const TOKENS: &[Column<JwtToken>] = &[
    Column::new("ID", |token| token.id.clone()),
    Column::new("ISSUED-AT", |token| moment(token.iat)),
    Column::new("EXPIRES-AT", |token| if token.exp == 0 { "never".to_owned() } else { moment(token.exp) }),
];

const SECONDS: &[Column<JwtToken>] = &[
    Column::new("ID", |token| token.id.clone()),
    Column::new("ISSUED-AT", |token| token.iat.to_string()),
    Column::new("EXPIRES-AT", |token| token.exp.to_string()),
];

impl ListTokens {
    async fn run(self) -> Result<(), Failure> {
        let project = read(&self.place, &self.project).await?;
        if !project.spec.roles.iter().any(|role| role.name == self.role) {
            return Err(missing(&self.project, &self.role));
        }
        let tokens = tokens_of(&project, &self.role);
        if tokens.is_empty() {
            terminal::remark("The role has no tokens.");
            return Ok(());
        }
        print::out(&listing::table(if self.unixtime { SECONDS } else { TOKENS }, &tokens, false))
    }
}

impl CreateToken {
    async fn run(self) -> Result<(), Failure> {
        let seconds = self.expires_in.map_or(0, |time| time.as_secs());
        if self.expires_in.is_some() && seconds == 0 {
            return Err(Failure::usage(
                "a token counts for a second at least: leave --expires-in out for ever",
            ));
        }
        let seconds = i64::try_from(seconds).map_err(|_| Failure::usage("that is too long"))?;
        let token = Desk::at(&self.place, async |desk| {
            desk.create_role_token(&self.project, &self.role, &self.id, seconds).await
        })
        .await?;
        if !self.token_only {
            terminal::remark(&format!(
                "Token of role {} of project {}; it is shown once:",
                self.role, self.project
            ));
        }
        print::out(&(token + "\n"))
    }
}

impl DeleteToken {
    async fn run(self) -> Result<(), Failure> {
        Desk::at(&self.place, async |desk| {
            desk.delete_role_token(&self.project, &self.role, self.issued_at).await
        })
        .await?;
        print::out(&format!("appproject.argoproj.io/{} token of role {} revoked\n", self.project, self.role))
    }
}

/// Changes one role of a project.
async fn of_role(
    place: &Place,
    project: &str,
    role: &str,
    change: impl Fn(&mut ProjectRole),
) -> Result<Outcome, Failure> {
    let change = |spec: &mut AppProjectSpec| match spec.roles.iter_mut().find(|known| known.name == role) {
        None => Err(missing(project, role)),
        Some(known) => {
            change(known);
            Ok(())
        }
    };
    edit(place, project, change).await
}

async fn read(place: &Place, name: &str) -> Result<AppProject, Failure> {
    let project: Value = Desk::at(place, async |desk| desk.project(name).await).await?;
    serde_json::from_value(project)
        .map_err(|error| Failure::failed(format!("this is no AppProject: {error}")))
}

/// The tokens of a role: those of the status, where newer versions of Argo CD keep them, or those of the role itself.
fn tokens_of(project: &AppProject, role: &str) -> Vec<JwtToken> {
    match project.status.jwt_tokens_by_role.get(role) {
        Some(tokens) => tokens.items.clone(),
        None => {
            let mut roles = project.spec.roles.iter();
            roles.find(|known| known.name == role).map(|known| known.jwt_tokens.clone()).unwrap_or_default()
        }
    }
}

fn missing(project: &str, role: &str) -> Failure {
    Failure::failed(format!(
        "project {project} has no role {role}; `baton proj role list {project}` shows those it has"
    ))
}

fn moment(second: i64) -> String {
    Timestamp::from_second(second).map_or_else(|_| second.to_string(), |time| time.to_string())
}
