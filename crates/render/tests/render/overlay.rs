//! A generator's template over that of its set (1.16). Expected values are worked by hand.

use crate::support::template;
use baton_render::overlay;

#[test]
fn what_the_generator_leaves_empty_comes_from_the_set() {
    for (over, base, expected) in [
        ("{}", "{metadata: {name: a}, spec: {project: p}}", "{metadata: {name: a}, spec: {project: p}}"),
        // Scalars: what is not empty wins; false, 0 and "" cannot override.
        (
            "{metadata: {name: b}, spec: {project: '', revisionHistoryLimit: 0, syncPolicy: {automated: {prune: false, selfHeal: true}}}}",
            "{metadata: {name: a}, spec: {project: p, revisionHistoryLimit: 3, syncPolicy: {automated: {prune: true, selfHeal: false}}}}",
            "{metadata: {name: b}, spec: {project: p, revisionHistoryLimit: 3, syncPolicy: {automated: {prune: true, selfHeal: true}}}}",
        ),
        // Maps merge by key, the generator wins; an empty value of its does not.
        (
            "{metadata: {labels: {a: over, e: ''}}}",
            "{metadata: {labels: {a: base, b: base, e: base}}}",
            "{metadata: {labels: {a: over, b: base, e: base}}}",
        ),
        // Lists that have elements stay whole.
        (
            "{metadata: {finalizers: [x]}, spec: {source: {helm: {valueFiles: [], parameters: [{name: a}]}}}}",
            "{metadata: {finalizers: [v, z]}, spec: {source: {helm: {valueFiles: [v], parameters: [{name: b}, {name: c}]}}}}",
            "{metadata: {finalizers: [x]}, spec: {source: {helm: {valueFiles: [v], parameters: [{name: a}]}}}}",
        ),
        // Objects that are set on both sides merge deeply; source and sources can both come about.
        (
            "{spec: {source: {path: over, helm: {releaseName: r}}}}",
            "{spec: {source: {path: base, repoURL: u, directory: {recurse: true}}, sources: [{repoURL: s}]}}",
            "{spec: {source: {path: over, repoURL: u, helm: {releaseName: r}, directory: {recurse: true}}, sources: [{repoURL: s}]}}",
        ),
        // Free-form values are one text to Go, even when empty.
        (
            "{spec: {source: {helm: {valuesObject: {a: {x: 1}}}}}}",
            "{spec: {source: {helm: {valuesObject: {a: {w: 2}, b: 3}}}}}",
            "{spec: {source: {helm: {valuesObject: {a: {x: 1}}}}}}",
        ),
        (
            "{spec: {source: {helm: {valuesObject: {}}}}}",
            "{spec: {source: {helm: {valuesObject: {b: 3}}}}}",
            "{spec: {source: {helm: {valuesObject: {}}}}}",
        ),
    ] {
        assert_eq!(overlay(&template(over), &template(base)), template(expected), "{over}");
    }
}
