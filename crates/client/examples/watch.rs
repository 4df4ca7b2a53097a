//! An agent in ten lines: prints every new document and approves events of this machine alone.
//!
//! `cargo run --package forewarn-client --example watch`; set `SCHEDULEDEVENTSIP` if the endpoint is elsewhere.

use forewarn_client::{Client, Status, Word};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut client = Client::find().await?;
    let me = client.name().await?;
    loop {
        let observation = client.next().await;
        println!("{}: {:#?}", observation.document.incarnation, observation.document.events);
        let mine = observation.document.events.iter().filter(|event| event.resources == [me.as_str()]);
        // A status that this client does not know is not approved.
        let scheduled = mine.filter(|event| event.status == Word::Known(Status::Scheduled));
        let scheduled: Vec<_> = scheduled.map(|event| event.id).collect();
        // A real agent drains, saves or hands over here.
        client.approve(&scheduled).await?;
    }
}
