//! Documents of XCSP3 that are taken, and those that are not.

use groups::network::{Algorithm, Domains, Network, xcsp};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

fn document(variables: &str, constraints: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<instance format=\"XCSP3\" type=\"CSP\">\n<variables>\n{variables}\n</variables>\n<constraints>\n{constraints}\n</constraints>\n</instance>\n"
    )
}

/// Each variable with the values that are left.
fn left(network: &Network) -> Vec<String> {
    let left = Algorithm::Ac3Bit.enforce(network, &Domains::new(network)).domains.expect("consistent");
    let values = |variable| left.places(network, variable).map(move |place| network.values(variable)[place]);
    (0..network.variables_count())
        .map(|variable| format!("{} {:?}", network.name(variable), values(variable).collect::<Vec<_>>()))
        .collect()
}

const VARIABLES: &str =
    "<!-- three --><var id=\"a\"> 3 1..2 7 </var><array id=\"x\" size=\"[2]\" note=\"n\"> -1..1 </array>";

#[test]
fn what_is_read_has_names_values_and_relations() {
    for (constraints, expected) in [
        ("", ["a [3, 1, 2, 7]", "x[0] [-1, 0, 1]", "x[1] [-1, 0, 1]"]),
        // Values that no domain has are not allowed, and refused to nobody.
        (
            "<extension id=\"e\"><list> a x[0] </list><supports> (3,-1) ( 7 , 1 )\n(9,0)(1,5) </supports></extension>",
            ["a [3, 7]", "x[0] [-1, 1]", "x[1] [-1, 0, 1]"],
        ),
        (
            "<extension><list> x[0..1] </list><conflicts> (0,-1)(0,0)(0,1)(9,9) </conflicts></extension>",
            ["a [3, 1, 2, 7]", "x[0] [-1, 1]", "x[1] [-1, 0, 1]"],
        ),
        (
            "<extension><list> x[] </list><conflicts/></extension>",
            ["a [3, 1, 2, 7]", "x[0] [-1, 0, 1]", "x[1] [-1, 0, 1]"],
        ),
        (
            "<group><extension><list> %1 %0 </list><supports> (1,-1)(0,0)(1,3) </supports></extension><args> x[0] x[1] </args><args> a x[1] </args></group>",
            ["a [3]", "x[0] [-1]", "x[1] [1]"],
        ),
        (
            "<group><extension><list> a %0 </list><supports> (1,-1)(1,1) </supports></extension><args> x[1] </args></group>",
            ["a [1]", "x[0] [-1, 0, 1]", "x[1] [-1, 1]"],
        ),
        // Of one variable, and of one with itself.
        (
            "<extension><list> a </list><supports> 1..2 8 </supports></extension><extension><list> x[0] x[0] </list><conflicts> (0,0)(-1,1) </conflicts></extension>",
            ["a [1, 2]", "x[0] [-1, 1]", "x[1] [-1, 0, 1]"],
        ),
        // Two over the same pair: each value has a support in each.
        (
            "<extension><list> x[0] x[1] </list><supports> (0,0)(1,1) </supports></extension><extension><list> x[1] x[0] </list><supports> (0,1)(1,0) </supports></extension>",
            ["a [3, 1, 2, 7]", "x[0] [0, 1]", "x[1] [0, 1]"],
        ),
    ] {
        let network = xcsp::read(&document(VARIABLES, constraints)).expect(constraints);
        assert_eq!(left(&network), expected, "{constraints}");
    }
}

#[test]
fn what_is_not_taken_is_said_with_its_line() {
    let extension = |list: &str, table: &str| {
        document(VARIABLES, &format!("<extension>\n<list> {list} </list>{table}</extension>"))
    };
    for (text, expected) in [
        (String::new(), "line 1: the document ends too soon"),
        ("<a/>".to_owned(), "line 1: <a> where <instance> was to begin"),
        ("<!DOCTYPE a [<!ENTITY b \"c\">]>\n<instance/>".to_owned(), "line 1: a document type is not taken"),
        ("<instance type=\"COP\"/>".to_owned(), "line 1: the type \"COP\" is not taken"),
        ("<instance format=\"XCSP2\"/>".to_owned(), "line 1: the format \"XCSP2\" is not taken"),
        ("<instance>\n<constraints/>".to_owned(), "line 2: <constraints> in <instance> is not taken"),
        (
            "<instance>\n<variables>\n</instance>".to_owned(),
            "line 3: ill-formed document: expected `</variables>`, but `</instance>` was found",
        ),
        ("<instance/>\n<instance/>".to_owned(), "line 2: something behind the end of <instance>"),
        (document("<var id=\"a\"> &x; </var>", ""), "line 4: an entity where none belongs"),
        (document("<var id=\"a\"> 1 x </var>", ""), "line 4: a: \"x\" is no whole number of 64 bits"),
        (document("<var id=\"a\"> 0..9223372036854775807 </var>", ""), "line 4: a: more than 4194304 values"),
        (
            document("<var id=\"a\"> 0..4000000 </var>\n<var id=\"b\"> 1..2000000 </var>", ""),
            "line 5: b: more than 4194304 values",
        ),
        (
            document("<array id=\"a\" size=\"[9999999]\"> 1 </array>", ""),
            "line 4: a: more than 4194304 variables",
        ),
        (document("<var id=\"a\"> 2..1 </var>", ""), "line 4: a: the range \"2..1\" ends before it begins"),
        (document("<var id=\"a\"></var>", ""), "line 4: a: the domain is empty"),
        (document("<var id=\"a\"> 1 </var>\n<var id=\"a\"> 1 </var>", ""), "line 5: the id a comes again"),
        (document("<var id=\"a[0]\"> 1 </var>", ""), "line 4: the id \"a[0]\" is not taken"),
        (
            document("<var id=\"a\" type=\"symbolic\"> r g </var>", ""),
            "line 4: a: the type \"symbolic\" is not taken",
        ),
        (document("<var id=\"a\" as=\"b\"/>", ""), "line 4: the attribute as of <var> is not taken"),
        (
            document("<array id=\"a\" size=\"[2][3]\"> 1 </array>", ""),
            "line 4: \"[2][3]\": arrays of several dimensions are not taken",
        ),
        (
            document("<array id=\"a\" size=\"[2]\"><domain for=\"a[0]\"> 1 </domain></array>", ""),
            "line 4: <domain> in <array> is not taken",
        ),
        (
            document(VARIABLES, "<allDifferent> a x[0] </allDifferent>"),
            "line 7: <allDifferent> in <constraints> is not taken",
        ),
        (
            document(VARIABLES, "<group>\n<intension> eq(%0,%1) </intension></group>"),
            "line 8: <intension> in <group> is not taken",
        ),
        (document(VARIABLES, "<group></group>"), "line 7: <group> has no constraint"),
        (
            document(VARIABLES, "<extension>\n<list> a </list></extension>"),
            "line 7: <extension> has no <supports> or <conflicts>",
        ),
        (
            extension("a x[0] x[1]", "<supports> (1,1,1) </supports>"),
            "line 7: a constraint over more than two variables is not taken",
        ),
        (extension("a y", "<supports/>"), "line 7: there is no variable \"y\""),
        (extension("a x", "<supports/>"), "line 7: there is no variable \"x\""),
        (extension("a x[2]", "<supports/>"), "line 7: \"x[2]\" is outside the array"),
        (
            extension("x[0..18446744073709551615]", "<supports/>"),
            "line 7: \"x[0..18446744073709551615]\" is outside the array",
        ),
        (extension("a %0", "<supports/>"), "line 7: there is no argument for %0"),
        (extension("", "<supports/>"), "line 7: a constraint over no variable"),
        (
            extension("a x[0]", "<supports> (1,1)(1) </supports>"),
            "line 7: the tuple \"(1)\" has not two values",
        ),
        (
            extension("a x[0]", "<supports> (1,*) </supports>"),
            "line 7: `*` in a table: short tables are not taken",
        ),
        (extension("a x[0]", "<supports> (1,1 </supports>"), "line 7: \"(1,1\" has no end"),
        (extension("a x[0]", "<supports as=\"b\"/>"), "line 8: the attribute as of <supports> is not taken"),
        (
            document(
                VARIABLES,
                "<group><extension><list> %0 a </list><supports/></extension>\n<args> x[0] x[1] </args></group>",
            ),
            "line 8: 2 arguments for 1 parameters",
        ),
        (
            document(
                VARIABLES,
                "<group><extension><list> %... </list><supports/></extension>\n<args> x[0] x[1] </args></group>",
            ),
            "line 8: `%...`: only `%0` and `%1` are taken",
        ),
    ] {
        let fault = xcsp::read(&text).expect_err(expected);
        assert_eq!(fault.to_string(), expected, "{text}");
    }
}

/// A table of many tuples for as many different pairs of domains is more work than its bytes.
#[test]
fn work_is_bounded() {
    let variables: String = (0..400).map(|idx| format!("<var id=\"v{idx}\"> {idx} 1000 </var>")).collect();
    let tuples = "(1,2)".repeat(1_000);
    let args: String =
        (0..400 * 400).map(|pair| format!("<args> v{} v{} </args>", pair / 400, pair % 400)).collect();
    let group = format!(
        "<group><extension><list> %0 %1 </list><conflicts> {tuples} </conflicts></extension>{args}</group>"
    );
    let fault = xcsp::read(&document(&variables, &group)).expect_err("too much work");
    assert!(fault.problem.starts_with("more than 67108864 tuples"), "{fault}");
}

/// Nothing that is made of pieces of documents makes the reader panic.
#[test]
fn no_document_panics() {
    let whole = document(
        VARIABLES,
        "<group><extension><list> %0 %1 </list><supports> (1,-1)(2,0) </supports></extension><args> a x[0] </args><args> x[0..1] </args></group><extension><list> a </list><conflicts> 1..2 </conflicts></extension>",
    );
    let letters: Vec<_> = whole.chars().collect();
    let pieces = [
        "<",
        ">",
        "/",
        "%",
        "[",
        "]",
        "..",
        "(",
        ")",
        ",",
        "-",
        "9999999999",
        "&",
        "<!--",
        "\u{e9}",
        "</list>",
        "<args>",
        "]]>",
    ];
    let random = &mut SmallRng::seed_from_u64(1);
    let runs = if crate::is_soak() { 1_000_000 } else { 5_000 };
    let mut taken = 0;
    for _ in 0..runs {
        let mut text: Vec<String> = letters.iter().map(|letter| letter.to_string()).collect();
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..text.len());
            match random.random_range(0..3) {
                0 => text[at].clear(),
                1 => text[at] = pieces[random.random_range(0..pieces.len())].to_owned(),
                _ => text.truncate(at.max(1)),
            }
        }
        if let Ok(network) = xcsp::read(&text.concat()) {
            let _ = Algorithm::Ac4.enforce(&network, &Domains::new(&network));
            taken += 1;
        }
    }
    assert!(taken > 100, "{taken} were taken");
}
