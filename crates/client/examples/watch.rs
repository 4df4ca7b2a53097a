//! An agent in ten lines: prints what changes, and approves what concerns this machine alone.
//!
//! `cargo run --package forewarn-client --example watch`; where the endpoint is not at its usual place, `SCHEDULEDEVENTSIP` names it.

use forewarn_client::{Client, Status, Word};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut client = Client::find().await?;
    let me = client.name().await?;
    loop {
        let seen = client.next().await;
        println!("{}: {:#?}", seen.document.incarnation, seen.document.events);
        let mine = seen.document.events.iter().filter(|event| event.resources == [me.as_str()]);
        // A status that this client does not know is not approved.
        let scheduled = mine.filter(|event| event.status == Word::Known(Status::Scheduled));
        let scheduled: Vec<_> = scheduled.map(|event| event.id).collect();
        // Here a real one drains, saves, hands over.
        client.approve(&scheduled).await?;
    }
}
