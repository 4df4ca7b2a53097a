//! One live server has a name in a realm.

use forewarn_testkit::etcd::EtcdCluster;
use forewarn_testkit::{SOLO_FLEET, ServeDir};

use crate::realm::site::{create, settings};

const SOCKET: &str = "api.socket = 'DIR/api.sock'";

/// The log line of a server that waits for the end of another one.
const WAITS: &str = "waiting for the end of its lease";

/// promise: D5
#[test]
fn a_second_server_with_the_name_of_a_live_one_does_not_start() {
    let Some(etcd) = EtcdCluster::start(1) else { return };
    let (place, other) =
        (ServeDir::new(crate::program(), SOLO_FLEET), ServeDir::new(crate::program(), SOLO_FLEET));
    let settings = settings(&etcd, 0, SOCKET);
    let server = place.start(&settings);
    let refused = other.serve(&settings).output().expect("the program runs");
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && error.contains("another server has the name s0"), "{error}");
    assert!(error.contains("hint: server.name must be unique in the realm"), "{error}");
    create(&server, &["host", "create", "still-here"]);
    // The same directory starts again at once, although the key of the killed process is still there.
    server.kill();
    let server = place.start(&settings);
    assert!(!server.log().contains(WAITS), "{}", server.log());
    create(&server, &["host", "create", "back"]);
    // A new directory has to wait for the end of the lease of the killed process, and starts then.
    server.kill();
    let server = other.start(&settings);
    assert!(server.log().contains(WAITS), "{}", server.log());
    create(&server, &["host", "create", "replaced"]);
}
