//! The matrix generator: every combination of two generators.

use baton_api::generators::{Generator, MatrixGenerator};
use baton_render::{Engine, Interpolation, Params, RenderError};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};

use crate::combine;
use crate::error::Fault;
use crate::kind;
use crate::outside::Outside;
use crate::pass::Pass;
use crate::world::World;

impl<W: World, O: Outside> Pass<'_, W, O> {
    /// Runs the first child, then the second for each of its sets, filled in with that set.
    pub(crate) async fn matrix(&self, matrix: &MatrixGenerator, place: &str) -> Result<Vec<Params>, Fault> {
        let [first, second] = matrix.generators.as_slice() else {
            let amount = if matrix.generators.len() < 2 { "less" } else { "more" };
            let message = format!("found {amount} than two generators, Matrix support only two");
            return Err(Fault::at(place, message));
        };
        let places = [format!("{place}.generators[0]"), format!("{place}.generators[1]")];
        let first = kind::entry(first).map_err(|message| Fault::at(&places[0], message))?;
        let second = kind::entry(second).map_err(|message| Fault::at(&places[1], message))?;

        let outer = self.child(&first, &places[0]).await?;
        let fills_in = outer.iter().any(|set| !set.is_empty());
        let second =
            Second::new(second, &self.engine, fills_in).map_err(|message| Fault::at(&places[1], message))?;
        let mut sets = Vec::new();
        if !second.has_templates {
            // It is the same for every set but the empty one, which leaves even its nulls alone.
            let mut inner: [Option<Vec<Params>>; 2] = [None, None];
            for left in &outer {
                let inner = &mut inner[usize::from(left.is_empty())];
                if inner.is_none() {
                    *inner = Some(self.filled_in(&second, left, &places[1]).await?);
                }
                self.combine(left, inner.as_deref().unwrap_or_default(), &mut sets)
                    .map_err(|message| Fault::at(place, message))?;
            }
            return Ok(sets);
        }
        // Borrowing from `outer` by index keeps the closure free of lifetimes, which `Send` inference needs.
        let runs = (0..outer.len()).map(|index| self.filled_in(&second, &outer[index], &places[1]));
        let mut runs = futures::stream::iter(runs).buffered(self.settings.limits.parallel.max(1)).enumerate();
        while let Some((index, inner)) = runs.next().await {
            self.combine(&outer[index], &inner?, &mut sets).map_err(|message| Fault::at(place, message))?;
        }
        Ok(sets)
    }

    /// Sets of the second child for one set of the first.
    fn filled_in<'p>(
        &'p self,
        second: &'p Second,
        left: &'p Params,
        place: &'p str,
    ) -> BoxFuture<'p, Result<Vec<Params>, Fault>> {
        async move {
            let entry = second.fill(left).map_err(|message| Fault::at(place, message))?;
            self.child(&entry, place).await
        }
        .boxed()
    }

    /// Appends one set per set of the second child; values of the first win.
    fn combine(&self, left: &Params, right: &[Params], sets: &mut Vec<Params>) -> Result<(), String> {
        self.budget.sets(sets.len().saturating_add(right.len()))?;
        for right in right {
            let set = match self.engine {
                Engine::Go(_) => combine::lay_over(right, left),
                Engine::Fast => combine::join_texts(left, right)
                    .map_err(|message| format!("failed to combine string maps: {message}"))?,
            };
            self.budget.pay(&set)?;
            sets.push(set);
        }
        Ok(())
    }
}

/// The second child.
struct Second {
    generator: Box<Generator>,
    /// How it is filled in; none while only empty sets are there, which leave it as it is.
    compiled: Option<Interpolation>,
    has_templates: bool,
}

impl Second {
    fn new(generator: Box<Generator>, engine: &Engine, fills_in: bool) -> Result<Second, String> {
        let json = serde_json::to_value(&*generator).map_err(|error| error.to_string())?;
        let has_templates = json.to_string().contains("{{");
        let compiled = fills_in
            .then(|| Interpolation::compile(engine, &json))
            .transpose()
            .map_err(|error| failed(&error))?;
        Ok(Second { generator, compiled, has_templates })
    }

    fn fill(&self, params: &Params) -> Result<Box<Generator>, String> {
        match &self.compiled {
            Some(compiled) if !params.is_empty() => {
                let json = compiled.render(params).map_err(|error| failed(&error))?;
                serde_json::from_value(json)
                    .map_err(|error| format!("the filled in generator is none: {error}"))
            }
            _ => Ok(self.generator.clone()),
        }
    }
}

fn failed(error: &RenderError) -> String {
    format!("failed to replace parameters in generator: {error}")
}
