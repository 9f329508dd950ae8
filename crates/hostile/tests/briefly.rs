//! Every fuzz body on random bytes. `PROPTEST_CASES` makes it longer than an ordinary run.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..400)
}

/// So many cases, always the same; or as many new ones as the environment asks for.
fn cases(usual: u32) -> ProptestConfig {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let config =
        ProptestConfig { failure_persistence: None, max_shrink_iters: 4000, ..ProptestConfig::default() };
    if asked { config } else { ProptestConfig { cases: usual, rng_seed: RngSeed::Fixed(7), ..config } }
}

// These start a cluster for each case.
proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn any_request_is_answered_and_only_sound_objects_are_stored(bytes in bytes()) {
        baton_hostile::request(&bytes);
    }

    #[test]
    fn any_yaml_is_an_object_or_a_bad_request(bytes in bytes()) {
        baton_hostile::yaml(&bytes);
    }
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn any_patch_gives_an_object_or_an_error(bytes in bytes()) {
        baton_hostile::patch(&bytes);
    }

    #[test]
    fn any_turns_of_managers_keep_the_bookkeeping_sound(bytes in bytes()) {
        baton_hostile::apply(&bytes);
    }

    #[test]
    fn any_rule_is_refused_or_judges_any_object(bytes in bytes()) {
        baton_hostile::rules(&bytes);
    }

    #[test]
    fn any_protobuf_is_an_object_of_its_kind_or_an_error(bytes in bytes()) {
        baton_hostile::protobuf(&bytes);
    }

    #[test]
    fn any_selector_or_path_is_read_or_refused(bytes in bytes()) {
        baton_hostile::grammars(&bytes);
    }
}
