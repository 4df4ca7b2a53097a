//! Single commits and takeovers.

use forewarn_ownership::{
    Answer, BatchFate, BeginError, Commit, NothingInFlight, Revision, Takeover, TakeoverStep, Term,
    WriterStep,
};

use crate::reference_engine::{NumberWriter, ReferenceEngine, at, batch, id, name};

fn commit(engine: &mut ReferenceEngine, writer: &mut NumberWriter, number: u32) -> WriterStep<(), u32> {
    let answer = engine.execute(writer.begin(batch(number)).unwrap());
    writer.answer(answer).unwrap()
}

fn take_over(engine: &mut ReferenceEngine, server: &str, number: u32) -> NumberWriter {
    let takeover = Takeover::new(name(server), engine.revision, engine.head(), id(number), at(0)).unwrap();
    let answer = engine.execute(takeover.transaction());
    let TakeoverStep::Won(writer) = takeover.answer(answer) else { panic!("nothing came in between") };
    writer
}

#[test]
fn batches_are_numbered_and_changes_of_the_head_alone_are_not() {
    let (mut engine, mut writer) = ReferenceEngine::with_owner();
    let step = commit(&mut engine, &mut writer, 1);
    assert_eq!(step, WriterStep::Committed { number: 1, revision: Revision(6), payload: Some(1) });
    let refresh = Commit { batch: id(2), payload: None, details: (), clock: at(5_000) };
    let answer = engine.execute(writer.begin(refresh).unwrap());
    let step = writer.answer(answer).unwrap();
    assert_eq!(step, WriterStep::Committed { number: 1, revision: Revision(9), payload: None });
    assert_eq!((engine.head().clock, engine.head().term), (at(5_000), Term(1)));
    assert_eq!(engine.log.len(), 1);
    assert_eq!((writer.head(), writer.revision()), (engine.head(), engine.revision));
}

#[test]
fn one_transaction_is_in_flight() {
    let (_, mut writer) = ReferenceEngine::with_owner();
    let sent = writer.begin(batch(1)).unwrap().clone();
    assert_eq!(writer.begin(batch(2)), Err(BeginError::InFlight));
    assert_eq!(writer.begin_move(name("b"), id(3), at(0)), Err(BeginError::InFlight));
    assert_eq!(writer.answer(Answer::NoAnswer), Ok(WriterStep::Repeat));
    assert_eq!(writer.in_flight(), Some(&sent), "the same transaction is sent again");
    assert_eq!(writer.begin(batch(2)), Err(BeginError::InFlight));
}

#[test]
fn a_commit_whose_answer_was_lost_is_recognised_by_its_id() {
    let (mut engine, mut writer) = ReferenceEngine::with_owner();
    engine.execute(writer.begin(batch(1)).unwrap());
    assert_eq!(writer.answer(Answer::NoAnswer), Ok(WriterStep::Repeat));
    let answer = engine.execute(writer.in_flight().unwrap());
    assert!(matches!(answer, Answer::Conflict { .. }));
    let committed = WriterStep::Committed { number: 1, revision: engine.revision, payload: Some(1) };
    assert_eq!(writer.answer(answer), Ok(committed));
    assert!(matches!(commit(&mut engine, &mut writer, 2), WriterStep::Committed { number: 2, .. }));
}

#[test]
fn a_foreign_head_fences_for_good() {
    let (mut engine, mut former) = ReferenceEngine::with_owner();
    let mut owner = take_over(&mut engine, "b", 9);
    let WriterStep::Fenced { head, fate, payload, .. } = commit(&mut engine, &mut former, 1) else {
        panic!("another server owns the stream")
    };
    assert_eq!((head.as_ref(), fate, payload), (Some(owner.head()), BatchFate::NotApplied, Some(1)));
    assert_eq!(former.begin(batch(2)), Err(BeginError::Fenced));
    assert_eq!(former.begin_move(name("c"), id(3), at(0)), Err(BeginError::Fenced));
    assert_eq!(former.answer(Answer::Applied { revision: Revision(99) }), Err(NothingInFlight));
    assert!(matches!(commit(&mut engine, &mut owner, 4), WriterStep::Committed { number: 1, .. }));
}

#[test]
fn the_fate_of_a_repeated_commit_is_open_once_the_head_has_changed() {
    let (mut engine, mut former) = ReferenceEngine::with_owner();
    engine.execute(former.begin(batch(1)).unwrap());
    assert_eq!(former.answer(Answer::NoAnswer), Ok(WriterStep::Repeat));
    drop(take_over(&mut engine, "b", 9));
    let answer = engine.execute(former.in_flight().unwrap());
    let Ok(WriterStep::Fenced { fate, .. }) = former.answer(answer) else { panic!("b owns the stream") };
    let BatchFate::Unknown { number, batch } = fate else { panic!("the first copy was applied") };
    assert_eq!(engine.log[&number], (batch, 1), "the log decides");
}

#[test]
fn a_head_that_is_gone_fences() {
    let (_, mut writer) = ReferenceEngine::with_owner();
    writer.begin(batch(1)).unwrap();
    let step = writer.answer(Answer::Conflict { revision: Revision::ABSENT, head: None });
    assert!(matches!(step, Ok(WriterStep::Fenced { head: None, .. })));
}

#[test]
fn a_rejected_commit_changes_nothing() {
    let (mut engine, mut writer) = ReferenceEngine::with_owner();
    writer.begin(batch(1)).unwrap();
    assert_eq!(writer.answer(Answer::Rejected), Ok(WriterStep::Rejected { payload: Some(1) }));
    assert_eq!(writer.in_flight(), None);
    assert!(matches!(commit(&mut engine, &mut writer, 2), WriterStep::Committed { number: 1, .. }));
}

#[test]
fn a_rejection_says_nothing_about_an_earlier_send() {
    let (mut engine, mut writer) = ReferenceEngine::with_owner();
    engine.execute(writer.begin(batch(1)).unwrap());
    assert_eq!(writer.answer(Answer::NoAnswer), Ok(WriterStep::Repeat));
    assert_eq!(writer.answer(Answer::Rejected), Ok(WriterStep::Repeat));
    let answer = engine.execute(writer.in_flight().unwrap());
    assert!(matches!(writer.answer(answer), Ok(WriterStep::Committed { number: 1, .. })));
}

#[test]
fn a_commit_follows_the_head() {
    let (mut engine, mut writer) = ReferenceEngine::with_owner();
    let late = Commit { clock: at(70), ..batch(1) };
    let answer = engine.execute(writer.begin(late).unwrap());
    writer.answer(answer).unwrap();
    assert_eq!(writer.begin(Commit { clock: at(69), ..batch(2) }), Err(BeginError::EarlierClock));
    assert_eq!(writer.begin(Commit { clock: at(70), ..batch(1) }), Err(BeginError::UsedBatchId));
    assert_eq!(writer.begin_move(name("b"), id(2), at(69)), Err(BeginError::EarlierClock));
    let takeover = Takeover::<_, u32>::new(name("b"), engine.revision, engine.head(), id(2), at(69));
    assert_eq!(takeover, Err(BeginError::EarlierClock));
    assert!(writer.begin(Commit { clock: at(70), ..batch(2) }).is_ok(), "the same time again is permitted");
}

#[test]
fn a_takeover_changes_owner_and_term_and_keeps_the_rest() {
    let (mut engine, mut former) = ReferenceEngine::with_owner();
    commit(&mut engine, &mut former, 1);
    let writer = take_over(&mut engine, "b", 2);
    assert_eq!((engine.head().number, engine.head().term), (1, Term(2)));
    assert_eq!(engine.owner, Some(writer.owner()));
    assert_eq!(writer.owner().server, name("b"));
    assert_eq!((writer.head(), writer.revision()), (engine.head(), engine.revision));
}

#[test]
fn a_takeover_whose_answer_was_lost_is_won() {
    let (mut engine, _) = ReferenceEngine::with_owner();
    let takeover = Takeover::<_, u32>::new(name("b"), engine.revision, engine.head(), id(2), at(0)).unwrap();
    engine.execute(takeover.transaction());
    let TakeoverStep::Repeat(takeover) = takeover.answer(Answer::NoAnswer) else { panic!("no answer") };
    let TakeoverStep::Repeat(takeover) = takeover.answer(Answer::Rejected) else { panic!("still unknown") };
    let answer = engine.execute(takeover.transaction());
    let TakeoverStep::Won(writer) = takeover.answer(answer) else { panic!("the head has its id") };
    assert_eq!(writer.revision(), engine.revision);
}

#[test]
fn a_takeover_is_lost_to_any_other_write_of_the_head() {
    let (mut engine, mut owner) = ReferenceEngine::with_owner();
    let takeover = Takeover::<_, u32>::new(name("b"), engine.revision, engine.head(), id(2), at(0)).unwrap();
    commit(&mut engine, &mut owner, 1);
    let answer = engine.execute(takeover.transaction());
    let TakeoverStep::Lost { revision, head } = takeover.answer(answer) else { panic!("a has committed") };
    assert_eq!((revision, head.as_ref()), (engine.revision, Some(owner.head())));
    // The lost takeover names what the next one needs.
    let again = Takeover::<_, u32>::new(name("b"), revision, &head.unwrap(), id(3), at(0)).unwrap();
    let answer = engine.execute(again.transaction());
    assert!(matches!(again.answer(answer), TakeoverStep::Won(_)));
}

#[test]
fn a_refused_takeover_is_over() {
    let creation = Takeover::<_, u32>::creation(name("a"), id(1), (), at(0));
    assert_eq!(creation.answer(Answer::Rejected), TakeoverStep::Rejected);
}

#[test]
fn a_stream_is_created_once() {
    let (mut engine, _) = ReferenceEngine::with_owner();
    let second = Takeover::<_, u32>::creation(name("b"), id(1), (), at(0));
    assert_eq!(second.transaction().expected, Revision::ABSENT);
    let answer = engine.execute(second.transaction());
    assert!(matches!(second.answer(answer), TakeoverStep::Lost { .. }));
}
