//! Moves of a stream to another server.

use forewarn_ownership::{
    Answer, BeginError, Commit, NotTheOwner, OwnerRecord, Revision, StreamWriter, Term, WriterStep,
};

use crate::reference_engine::{NumberWriter, ReferenceEngine, at, batch, id, name};

fn moved() -> (ReferenceEngine, NumberWriter) {
    let (mut engine, mut former) = ReferenceEngine::with_owner();
    let answer = engine.execute(former.begin_move(name("b"), id(1), at(7)).unwrap());
    let to = OwnerRecord { server: name("b"), term: Term(2) };
    assert_eq!(former.answer(answer), Ok(WriterStep::Moved { to, revision: engine.revision }));
    (engine, former)
}

fn accept(engine: &ReferenceEngine, server: &str) -> Result<NumberWriter, NotTheOwner> {
    let head = engine.head().clone();
    StreamWriter::after_move(name(server), engine.owner.as_ref(), engine.revision, head)
}

#[test]
fn a_move_fences_the_server_that_makes_it() {
    let (_, mut former) = moved();
    assert_eq!(former.begin(batch(2)), Err(BeginError::Fenced));
    assert_eq!(former.begin_move(name("a"), id(2), at(7)), Err(BeginError::Fenced));
}

#[test]
fn the_new_owner_continues_without_a_takeover() {
    let (mut engine, _) = moved();
    let mut writer = accept(&engine, "b").unwrap();
    assert_eq!((writer.head().term, writer.head().clock), (Term(2), at(7)));
    let answer = engine.execute(writer.begin(Commit { clock: at(8), ..batch(2) }).unwrap());
    assert!(matches!(writer.answer(answer), Ok(WriterStep::Committed { number: 1, .. })));
}

#[test]
fn no_other_server_continues() {
    let (mut engine, _) = moved();
    assert_eq!(accept(&engine, "a"), Err(NotTheOwner));
    assert_eq!(accept(&engine, "c"), Err(NotTheOwner));
    // A takeover in between has a later term than the owner key that was read before it.
    engine.owner = Some(OwnerRecord { server: name("b"), term: Term(1) });
    assert_eq!(accept(&engine, "b"), Err(NotTheOwner));
    engine.owner = None;
    assert_eq!(accept(&engine, "b"), Err(NotTheOwner));
}

#[test]
fn a_move_whose_answer_was_lost_is_recognised_by_its_id() {
    let (mut engine, mut former) = ReferenceEngine::with_owner();
    engine.execute(former.begin_move(name("b"), id(1), at(0)).unwrap());
    assert_eq!(former.answer(Answer::NoAnswer), Ok(WriterStep::Repeat));
    let answer = engine.execute(former.in_flight().unwrap());
    assert!(matches!(former.answer(answer), Ok(WriterStep::Moved { .. })));
}

#[test]
fn a_refused_move_leaves_the_owner() {
    let (mut engine, mut owner) = ReferenceEngine::with_owner();
    owner.begin_move(name("b"), id(1), at(0)).unwrap();
    assert_eq!(owner.answer(Answer::Rejected), Ok(WriterStep::Rejected { payload: None }));
    let answer = engine.execute(owner.begin(batch(2)).unwrap());
    assert!(matches!(owner.answer(answer), Ok(WriterStep::Committed { revision: Revision(6), .. })));
    assert_eq!(engine.head().term, Term(1));
}
