//! Which functions there are, and what they do with whatever they are given.

use baton_template::{Entropy, Execution, Limits, SeededEntropy, Template, Value};
use proptest::prelude::*;

/// The names of sprig 3.3.0's `GenericFuncMap`.
const SPRIG: &str = include_str!("golden/sprig_names.txt");

/// Those that would let a template read the machine it runs on.
const REFUSED: [&str; 3] = ["env", "expandenv", "getHostByName"];

const ARGO_CD: [&str; 5] = ["normalize", "slugify", "toYaml", "fromYaml", "fromYamlArray"];

#[test]
fn every_function_of_sprig_but_three_is_known() {
    let known = |name: &str| Template::parse("t", &format!("{{{{{name}}}}}")).is_ok();
    let unknown: Vec<&str> = SPRIG.lines().filter(|name| !known(name)).collect();
    assert_eq!(unknown, REFUSED);
    assert_eq!(SPRIG.lines().count(), 211);
    for name in ARGO_CD {
        assert!(known(name), "{name}");
    }
}

#[test]
fn without_clock_and_randomness_functions_that_need_them_fail() {
    for (call, expected) in [
        ("now", "error calling now: there is no clock here"),
        ("date `2006` `x`", "error calling date: there is no clock here"),
        ("ago 1", "error calling ago: there is no clock here"),
        ("uuidv4", "error calling uuidv4: there is no randomness here"),
        ("randAlphaNum 5", "error calling randAlphaNum: there is no randomness here"),
        ("bcrypt `x`", "error calling bcrypt: there is no randomness here"),
        ("genPrivateKey `ecdsa`", "error calling genPrivateKey: there is no randomness here"),
    ] {
        let template = Template::parse("t", &format!("{{{{{call}}}}}")).expect("a template");
        let error = template.execute_in(&Value::Nil, &Execution::default()).expect_err(call).to_string();
        assert!(error.ends_with(expected), "{call}: {error}");
    }
    let template = Template::parse("t", "{{date `2006-01-02 MST` 0}}").expect("a template");
    assert_eq!(
        template.execute_in(&Value::Nil, &Execution::default()).as_deref(),
        Ok("1970-01-01 UTC"),
        "a time given needs no clock"
    );
}

#[test]
fn times_are_told_in_the_zone_of_the_clock() {
    let now = "2026-07-01T12:00:00[America/New_York]".parse().expect("a time");
    let execution = Execution { now: Some(&now), ..Execution::default() };
    for (text, expected) in [
        ("{{now}}", "2026-07-01 12:00:00 -0400 EDT"),
        ("{{date `15:04 MST` 0}}", "19:00 EST"),
        ("{{toDate `2006-01-02 15:04` `2026-01-01 00:00`}}", "2026-01-01 00:00:00 -0500 EST"),
        ("{{toDate `2006-01-02 15:04 MST` `2026-01-01 00:00 EST`}}", "2026-01-01 00:00:00 -0500 EST"),
        ("{{toDate `2006-01-02 15:04 MST` `2026-01-01 00:00 EDT`}}", "2025-12-31 23:00:00 -0500 EST"),
        ("{{toDate `2006-01-02 15:04 -0700` `2026-07-01 00:00 -0400`}}", "2026-07-01 00:00:00 -0400 EDT"),
        ("{{toDate `2006-01-02 15:04 -0700` `2026-07-01 00:00 -0500`}}", "2026-07-01 00:00:00 -0500 -0500"),
        // Go reads a time its zone skips by the offset before, one that comes twice by the first.
        ("{{toDate `2006-01-02 15:04` `2026-03-08 02:30`}}", "2026-03-08 01:30:00 -0500 EST"),
        ("{{toDate `2006-01-02 15:04` `2026-11-01 01:30`}}", "2026-11-01 01:30:00 -0400 EDT"),
        ("{{(toDate `2006-01-02` `2026-03-07`).AddDate 0 0 1}}", "2026-03-08 00:00:00 -0500 EST"),
        ("{{dateInZone `15:04 MST` now `Asia/Tokyo`}}", "01:00 JST"),
        ("{{now.UTC}} {{now.UTC.Local}}", "2026-07-01 16:00:00 +0000 UTC 2026-07-01 12:00:00 -0400 EDT"),
    ] {
        let template = Template::parse("t", text).expect("a template");
        assert_eq!(template.execute_in(&Value::Nil, &execution).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn the_same_seed_draws_the_same() {
    let draw = |entropy: &dyn Entropy| {
        let text = "{{uuidv4}} {{randAlphaNum 9}} {{randInt 0 1000000}} {{shuffle `abcdefgh`}} {{randBytes 5}} {{encryptAES `k` `x`}}";
        let execution = Execution { entropy: Some(entropy), ..Execution::default() };
        Template::parse("t", text).expect("a template").execute_in(&Value::Nil, &execution).expect("drawn")
    };
    assert_eq!(draw(&SeededEntropy::new(1)), draw(&SeededEntropy::new(1)));
    assert_ne!(draw(&SeededEntropy::new(1)), draw(&SeededEntropy::new(2)));
    assert_ne!(draw(&baton_template::SystemEntropy), draw(&baton_template::SystemEntropy));
}

#[test]
fn every_character_of_an_alphabet_is_drawn() {
    let entropy = SeededEntropy::new(3);
    let execution = Execution { entropy: Some(&entropy), ..Execution::default() };
    for (call, count) in [("randNumeric", 10), ("randAlpha", 52), ("randAlphaNum", 62), ("randAscii", 95)] {
        let template = Template::parse("t", &format!("{{{{{call} 3000}}}}")).expect("a template");
        let text = template.execute_in(&Value::Nil, &execution).expect("drawn");
        let distinct: std::collections::BTreeSet<char> = text.chars().collect();
        assert_eq!(distinct.len(), count, "{call}");
    }
}

/// An entropy that always gives the same byte, or none.
struct Stuck(Option<u8>);

impl Entropy for Stuck {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), String> {
        bytes.fill(self.0.ok_or("dry")?);
        Ok(())
    }
}

#[test]
fn bad_entropy_ends_with_an_error_or_a_text() {
    for entropy in [Stuck(Some(0)), Stuck(Some(255)), Stuck(None)] {
        for call in
            ["randAlpha 3", "shuffle `abc`", "randInt 0 3", "uuidv4", "randBytes 3", "encryptAES `a` `b`"]
        {
            let limits = Limits { steps: 500, ..Limits::default() };
            let execution = Execution { entropy: Some(&entropy), limits, ..Execution::default() };
            let template = Template::parse("t", &format!("{{{{{call}}}}}")).expect("a template");
            let made = template.execute_in(&Value::Nil, &execution);
            assert!(made.is_ok() || entropy.0 != Some(0), "{call}: {made:?}");
            assert!(made.is_err() || entropy.0.is_some(), "{call}: {made:?}");
        }
    }
}

const LIMITS: Limits = Limits { steps: 20_000, output: 8_192, depth: 100 };

fn execute(text: &str) -> Result<String, String> {
    let data = serde_json::json!({"a": {"b": [1, "x", null]}, "n": 3, "s": "héllo", "l": ["x", "y"]});
    let entropy = SeededEntropy::new(1);
    let now = "9999-12-30T21:00:00Z[Europe/Berlin]".parse().expect("a time");
    let execution =
        Execution { limits: LIMITS, now: Some(&now), entropy: Some(&entropy), ..Execution::default() };
    let template = Template::parse("t", text).map_err(|error| error.to_string())?;
    template.execute_in(&Value::from(&data), &execution).map_err(|error| error.to_string())
}

/// Arguments of every type, ordinary and extreme.
fn argument() -> impl Strategy<Value = String> {
    let known = [
        "0",
        "1",
        "-1",
        "7",
        "1000",
        "9223372036854775807",
        "-9223372036854775808",
        "1.5",
        "-1e300",
        "true",
        "nil",
        ".",
        ".a",
        ".n",
        ".s",
        ".l",
        ".missing",
        "`a`",
        "``",
        "`é☃`",
        "`1h`",
        "`-2562047h47m16.854775808s`",
        "`2006-01-02T15:04:05.999Z07:00`",
        "`__2 002 MST -070000 .000,999`",
        "`2024-02-29T23:59:59.999999999-23:59`",
        "`Europe/Berlin`",
        "`^(a|b)*?[^c]$`",
        "`(?P<x>.)\\\\b`",
        "`${x}$1$$`",
        "`>=1.2 || ~3.x`",
        "`v1.2.3-rc.1+b`",
        "`http://u:p@[::1]:80/a%20b?c#d`",
        "`AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=`",
        "`MFRGG===`",
        "`ed25519`",
        "(repeat 200 `aB `)",
        "(list 1 `x` nil)",
        "(list `10.0.0.1` `::1`)",
        "(dict `host` `h` `path` `p`)",
        "now",
        "(toDate `2006` `0001`)",
        "(date `2006` now | toDate `2006`)",
        "(semver `1.2.3-a`)",
        "now.Month",
        "(now.Sub (toDate `2006` `2000`))",
        "(int64 9223372036854775807)",
        "(genPrivateKey `ed25519`)",
        "(genCAWithKey `x` 1 (genPrivateKey `ed25519`))",
    ];
    prop_oneof![
        4 => proptest::sample::select(known.to_vec()).prop_map(str::to_owned),
        1 => any::<String>().prop_map(|text| format!("`{}`", text.replace('`', "'"))),
        1 => any::<i64>().prop_map(|number| number.to_string()),
    ]
}

fn name() -> impl Strategy<Value = String> {
    let names = SPRIG.lines().filter(|name| !REFUSED.contains(name)).chain(ARGO_CD);
    proptest::sample::select(names.map(str::to_owned).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_argument_makes_a_function_panic(
        name in name(),
        arguments in proptest::collection::vec(argument(), 0..6),
        then in proptest::option::of(name()),
    ) {
        let then = then.map(|then| format!(" | {then}")).unwrap_or_default();
        let text = format!("{{{{{name} {}{then}}}}}", arguments.join(" "));
        if let Ok(output) = execute(&text) {
            prop_assert!(output.len() <= LIMITS.output);
        }
    }

    #[test]
    fn no_argument_makes_a_method_panic(
        receiver in proptest::sample::select(vec![
            "now", "(toDate `x` `y`)", "(now.Sub (toDate `2006` `2000`))", "now.Weekday", "(semver `v1.2.3-a+b`)",
            "(buildCustomCert `a` `b`)", "(genCAWithKey `x` 1 (genPrivateKey `ed25519`))",
        ]),
        method in proptest::sample::select(vec![
            "Year", "Month", "Day", "Hour", "YearDay", "Weekday", "Unix", "UnixNano", "Format", "String", "UTC",
            "Local", "Add", "AddDate", "Sub", "After", "Equal", "Compare", "IsZero", "Truncate", "Round", "Hours",
            "Minutes", "Milliseconds", "Abs", "Major", "Original", "IncPatch", "IncMinor", "IncMajor", "SetPrerelease",
            "SetMetadata", "LessThan", "Cert", "Key", "Nope",
        ]),
        arguments in proptest::collection::vec(argument(), 0..4),
    ) {
        let _ = execute(&format!("{{{{{receiver}.{method} {}}}}}", arguments.join(" ")));
    }

    #[test]
    fn any_layout_is_formatted_and_read_back_or_refused(
        layout in "(2006|06|January|Jan|01|1|Monday|Mon|02|_2|2|002|__2|15|03|3|04|4|05|5|PM|pm|MST|Z07:00|-0700|-07|Z070000|[.,][09]{1,10}|[ a-zé:/_-]){0,12}",
        seconds in any::<i64>(),
        shift in 0u32..63,
    ) {
        let seconds = seconds >> shift;
        let text = format!("{{{{$t := dateInZone `{layout}` {seconds} `Asia/Kolkata`}}}}{{{{mustToDate `{layout}` $t}}}}");
        let _ = execute(&text);
    }

    #[test]
    fn any_text_is_a_key_or_is_refused(text in "(-----(BEGIN|END) (RSA |EC |DSA |)PRIVATE KEY-----\n|[A-Za-z0-9+/=]{0,30}\n|a: b\n|\n){0,6}") {
        let _ = execute(&format!("{{{{genCAWithKey `x` 1 `{text}`}}}}{{{{buildCustomCert (b64enc `{text}`) (b64enc `{text}`)}}}}"));
    }
}
