//! The head of a rollout is lost, emptied or garbled in the middle of a run: the order is kept, the rollout goes on, and
//! what was synced is not synced again. Where the head is an annotation of the set, as in one of the processes that
//! `shape` starts, that is what is harmed.

use crate::order::{MEMBERS, judged, names};
use crate::scene::{Harm, Scene, fleet};

const HARMS: [Harm; 4] = [Harm::Lost, Harm::Emptied, Harm::Garbled, Harm::Halved];

/// When it happens.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// An operation of the first step is under way.
    FirstUnderWay,
    /// The first step is done, and one of the second has begun.
    SecondBegun,
    /// The last step is open.
    LastOpen,
}

const MOMENTS: [Moment; 3] = [Moment::FirstUnderWay, Moment::SecondBegun, Moment::LastOpen];

async fn wait_for(scene: &Scene, moment: Moment, commit: &str) {
    let begun = |scene: &Scene, step: &str| {
        scene.applications().iter().any(|(name, one)| {
            let synced = &one["status"]["operationState"]["syncResult"]["revision"];
            name.ends_with(step) && (one["operation"]["sync"]["revision"] == *commit || synced == commit)
        })
    };
    scene
        .until(&format!("{moment:?}"), |scene| match moment {
            Moment::FirstUnderWay => begun(scene, "dev"),
            Moment::SecondBegun => begun(scene, "test"),
            Moment::LastOpen => begun(scene, "prod"),
        })
        .await;
}

/// Does every harm at every moment, a commit each; with another leader in between, or with the same one.
async fn harm_all(crashes: bool) {
    let mut scene = Scene::new().await;
    // One of each step, so that the run is still under way when it happens.
    scene.slow_down(&["aa-prod", "cc-test", "zz-dev"]);
    let commit = scene.commit(&names(), "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    for harm in HARMS {
        for moment in MOMENTS {
            let what = format!("{harm:?}, {moment:?}");
            let (since, commit) = (scene.revision(), scene.commit(&names(), &what));
            wait_for(&scene, moment, &commit).await;
            let run = scene.run("fleet")["seq"].as_u64();
            scene.harm_head("fleet", harm).await;
            if crashes {
                scene = scene.crash().await;
            }
            scene.rolled_out(&commit).await;
            let began = judged(&scene, since);
            assert_eq!(began.len(), MEMBERS.len(), "{what}: each is synced once: {began:?}");
            // Without its run the head is no head: what is left of one is gone on with.
            let again = scene.run("fleet")["seq"].as_u64() > run;
            assert_eq!(again, harm != Harm::Halved, "{what}: another run");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_that_is_harmed_under_its_leader_costs_nothing_but_a_new_run() {
    harm_all(false).await;
}

#[tokio::test(start_paused = true)]
async fn a_head_that_is_harmed_between_two_leaders_costs_nothing_but_a_new_run() {
    harm_all(true).await;
}
