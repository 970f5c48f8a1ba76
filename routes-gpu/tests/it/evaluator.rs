//! Which sequences of kernels have a result.

use routes::Costed;
use routes_gpu::{Error, Evaluator, Form, Kernel, Tuning};

use crate::generator::random;
use crate::searcher;

const KERNELS: [Kernel; 6] = [
    Kernel::Initialise,
    Kernel::Relax,
    Kernel::Update,
    Kernel::BlockMinimum,
    Kernel::Minimum,
    Kernel::Rounds,
];

/// `Initialise ((Relax Update BlockMinimum Minimum) | Rounds)*`, by its grammar.
fn is_legal(sequence: &[Kernel]) -> bool {
    fn are_rounds(sequence: &[Kernel]) -> bool {
        match sequence {
            []
            | [Kernel::Rounds]
            | [Kernel::Relax, Kernel::Update, Kernel::BlockMinimum, Kernel::Minimum] => true,
            [Kernel::Rounds, rest @ ..]
            | [Kernel::Relax, Kernel::Update, Kernel::BlockMinimum, Kernel::Minimum, rest @ ..] => {
                are_rounds(rest)
            }
            _ => false,
        }
    }
    matches!(sequence, [Kernel::Initialise, rest @ ..] if are_rounds(rest))
}

/// All sequences of up to seven kernels.
#[test]
fn legal_sequences_are_accepted_and_no_others() {
    let mut sequences = vec![Vec::new()];
    let (mut at, mut legal) = (0, 0);
    while let Some(sequence) = sequences.get(at).cloned() {
        at += 1;
        assert_eq!(Evaluator::judge(&sequence).is_ok(), is_legal(&sequence), "{sequence:?}");
        legal += usize::from(is_legal(&sequence));
        if sequence.len() < 7 {
            sequences.extend(KERNELS.map(|kernel| [&*sequence, &[kernel]].concat()));
        }
    }
    // By how many rounds are composed, and where the others are among them.
    assert_eq!((at, legal), (335_923, 13));
}

#[test]
fn a_searcher_refuses_a_kernel_before_its_turn_and_goes_on() {
    let made = random(1);
    let graphs = [Costed { graph: &made.graph, costs: &made.costs }];
    let mut searcher = searcher();
    searcher.load(&graphs, Tuning::default()).expect("memory");
    let is_refused = |answer: Result<(), Error>| matches!(answer, Err(Error::OutOfOrder(_)));
    assert!(KERNELS[1..].iter().all(|kernel| is_refused(searcher.launch(*kernel))));
    assert!(is_refused(searcher.route(0).map(drop)) && is_refused(searcher.run(Form::Composed, 1).map(drop)));
    searcher.begin(&[(0, [0, 0])]).expect("memory");
    let round = [Kernel::Relax, Kernel::Update, Kernel::BlockMinimum, Kernel::Minimum];
    for kernel in round.into_iter().chain([Kernel::Rounds]).chain(round) {
        let is_round = matches!(kernel, Kernel::Relax | Kernel::Rounds);
        assert_eq!(is_refused(searcher.route(0).map(drop)), !is_round);
        assert_eq!(is_refused(searcher.is_over().map(drop)), !is_round);
        for other in KERNELS {
            let may = other == kernel || is_round && matches!(other, Kernel::Relax | Kernel::Rounds);
            assert!(may || is_refused(searcher.launch(other)), "{other:?} before {kernel:?}");
        }
        searcher.launch(kernel).expect("the next one");
    }
    assert_eq!(searcher.route(0).expect("between rounds").expect("it is there").cost, 0);
    // Other costs are another search.
    searcher.set_costs(0, &made.costs).expect("a copy");
    let told = searcher.route(0).expect_err("its search is over").to_string();
    assert_eq!(told, "a result cannot follow nothing");
    searcher.begin(&[(0, [0, 0])]).expect("memory");
    let told = searcher.launch(Kernel::Update).expect_err("nothing was relaxed").to_string();
    assert_eq!(told, "Update cannot follow Initialise");
}
