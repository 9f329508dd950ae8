//! Results of an operation, in the order they were begun.

use std::collections::BTreeMap;

use baton_api::application_status::ResourceResult;

use crate::task::{ResultKey, Task};

#[derive(Debug, Default)]
pub(super) struct Results {
    list: Vec<ResourceResult>,
    places: BTreeMap<ResultKey, usize>,
}

impl Results {
    pub(super) fn of(stored: &[ResourceResult]) -> Results {
        let mut results = Results::default();
        for result in stored {
            results.places.insert(ResultKey::of(result), results.list.len());
            results.list.push(result.clone());
        }
        results
    }

    pub(super) fn list(&self) -> Vec<ResourceResult> {
        self.list.clone()
    }

    pub(super) fn any(&self, condition: impl Fn(&ResourceResult) -> bool) -> bool {
        self.list.iter().any(condition)
    }

    /// Gives a task what is known of it.
    pub(super) fn restore(&self, task: &mut Task) {
        if let Some(place) = self.places.get(&task.result_key()) {
            let result = &self.list[*place];
            task.status.clone_from(&result.status);
            task.state.clone_from(&result.hook_phase);
            task.message.clone_from(&result.message);
        }
    }

    /// Takes over what is known of a task now.
    pub(super) fn put(&mut self, task: &Task) {
        match self.places.get(&task.result_key()) {
            Some(place) => {
                let result = &mut self.list[*place];
                result.status.clone_from(&task.status);
                result.hook_phase.clone_from(&task.state);
                result.message.clone_from(&task.message);
            }
            None => {
                self.places.insert(task.result_key(), self.list.len());
                self.list.push(task.result());
            }
        }
    }
}
