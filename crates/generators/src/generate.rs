//! From the generators of a set to parameters.

use std::fmt;
use std::time::Duration;

use baton_api::ApplicationSet;
use baton_api::application_set::ApplicationTemplate;
use baton_render::{Engine, Params, overlay};
use baton_scm::Hosts;
use baton_source::Repositories;
use baton_template::Value;

use crate::error::{Fault, GeneratorError};
use crate::kind::Kind;
use crate::outside::{Live, Outside};
use crate::pass::Pass;
use crate::plugin::Caller;
use crate::reads::Reads;
use crate::requeue;
use crate::settings::Settings;
use crate::world::World;

/// All kinds of generators, with what they reach beside the cluster.
pub struct Generators {
    outside: Live,
    settings: Settings,
}

/// What the generators of a set produced.
#[derive(Debug)]
pub struct Generated {
    /// One per generator; an entry of `spec.generators` that holds several yields several.
    pub groups: Vec<Group>,
    /// What was read for it.
    pub reads: Reads,
    /// When the generators want to look again.
    pub requeue_after: Option<Duration>,
}

/// Parameters of one generator.
pub struct Group {
    /// Index of its entry in `spec.generators`.
    pub generator: usize,
    /// What the sets are to be rendered with: the generator's own template over that of the set.
    pub template: ApplicationTemplate,
    /// One set per Application, in order.
    pub params: Vec<Params>,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let params: Vec<Value> = self.params.iter().cloned().map(Value::Map).collect();
        f.debug_struct("Group")
            .field("generator", &self.generator)
            .field("template", &self.template)
            .field("params", &params)
            .finish()
    }
}

impl Generators {
    /// Generators that read through these.
    pub fn new(repositories: Repositories, hosts: Hosts, settings: Settings) -> Generators {
        let plugins = Caller::new(settings.limits.answer);
        Generators { outside: Live { repositories, hosts, plugins }, settings }
    }

    /// The settings given.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The repositories given.
    pub fn repositories(&self) -> &Repositories {
        &self.outside.repositories
    }

    /// The hosts given.
    pub fn hosts(&self) -> &Hosts {
        &self.outside.hosts
    }

    /// When the generators of a set want to look again, whether or not they succeed.
    pub fn requeue_after(&self, set: &ApplicationSet) -> Option<Duration> {
        requeue::after(&set.spec.generators, &self.settings)
    }

    /// Runs every generator of a set.
    ///
    /// # Errors
    /// If anything a generator needs cannot be read, is malformed, or is more than the limits allow.
    pub async fn generate(
        &self,
        set: &ApplicationSet,
        world: &impl World,
    ) -> Result<Generated, GeneratorError> {
        generate(set, world, &self.outside, &self.settings).await
    }
}

pub(crate) async fn generate(
    set: &ApplicationSet,
    world: &impl World,
    outside: &impl Outside,
    settings: &Settings,
) -> Result<Generated, GeneratorError> {
    let engine = match Engine::of(&set.spec) {
        Ok(engine) => engine,
        Err(error) => {
            let fault = Fault::at("spec.goTemplateOptions", error.to_string());
            return Err(GeneratorError::new(fault, Reads::default()));
        }
    };
    let pass = Pass::new(set, engine, settings, world, outside);
    match groups(&pass).await {
        Ok(groups) => Ok(Generated {
            groups,
            reads: pass.into_reads(),
            requeue_after: requeue::after(&set.spec.generators, settings),
        }),
        Err(fault) => Err(GeneratorError::new(fault, pass.into_reads())),
    }
}

async fn groups<W: World, O: Outside>(pass: &Pass<'_, W, O>) -> Result<Vec<Group>, Fault> {
    let mut groups = Vec::new();
    let mut total = 0;
    for (index, entry) in pass.set.spec.generators.iter().enumerate() {
        let place = format!("spec.generators[{index}]");
        let kinds = Kind::all(entry);
        if kinds.is_empty() {
            // To take a misspelt generator for one that yields nothing would delete what the right one made.
            return Err(Fault::at(&place, "the entry holds no known generator"));
        }
        let results = pass.entry(entry, &place).await?;
        for (kind, params) in kinds.into_iter().zip(results) {
            total += params.len();
            pass.budget.sets(total).map_err(|message| Fault::at(&place, message))?;
            let template = overlay(kind.template(), &pass.set.spec.template);
            groups.push(Group { generator: index, template, params });
        }
    }
    Ok(groups)
}
