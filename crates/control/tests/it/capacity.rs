//! CPUs and memory in fleet files, in views, and in the placement of new machines.

use forewarn_control::*;
use forewarn_testkit::TestCluster;

use crate::fleets::apply;

const FILE: &str = r#"
[[host]]
name = "h1"
cpus = 8
memory = "16GiB"

[[host]]
name = "h2"
cpus = 4

[[host]]
name = "h3"

[[vm]]
name = "solo"
host = "h1"
cpus = 4
memory = "8GiB"

[[scale_set]]
name = "web"
cpus = 2
instances = 3
placement = { hosts = ["h1", "h2"] }
"#;

fn texts(differences: &[Difference]) -> Vec<&str> {
    differences.iter().map(|difference| difference.text.as_str()).collect()
}

fn room(cluster: &TestCluster, host: &str) -> RoomView {
    let id = cluster.rules.host_named(host).unwrap();
    host_view(&cluster.rules, id, None).unwrap().room.unwrap()
}

/// promise: T1
#[test]
fn a_fleet_file_states_sizes_and_capacities() {
    let mut cluster = TestCluster::empty();
    let file = Fleet::parse(FILE).unwrap();
    apply(&mut cluster, &file, UnlistedObjects::Keep);
    let h1 = room(&cluster, "h1");
    assert_eq!((h1.cpu_words(), h1.memory_words()), ("6 of 8".to_owned(), "8 GiB of 16 GiB".to_owned()));
    assert_eq!(room(&cluster, "h2").cpu_words(), "4 of 4");
    assert_eq!(cluster.difference(&file, UnlistedObjects::Keep).unwrap(), []);
    let written = cluster.fleet().print().unwrap();
    assert_eq!(Fleet::parse(&written).unwrap(), cluster.fleet());
    assert!(written.contains("memory = \"16GiB\""), "{written}");

    let smaller = FILE.replace("cpus = 8\n", "cpus = 5\n").replace("cpus = 2", "cpus = 1");
    let smaller = Fleet::parse(&smaller.replace("memory = \"8GiB\"", "memory = \"9GiB\"")).unwrap();
    assert_eq!(
        texts(&apply(&mut cluster, &smaller, UnlistedObjects::Keep)),
        [
            "~ host h1: capacity 8 CPUs and 16 GiB -> 5 CPUs and 16 GiB; warning: its machines take more",
            "~ solo: size 4 CPUs and 8 GiB -> 4 CPUs and 9 GiB",
            "~ web: size 2 CPUs -> 1 CPU",
        ]
    );
    assert_eq!(room(&cluster, "h1").cpu_words(), "5 of 5");
    let without = Fleet::parse(&FILE.replace("cpus = 8\nmemory = \"16GiB\"\n", "")).unwrap();
    apply(&mut cluster, &without, UnlistedObjects::Keep);
    assert!(!room(&cluster, "h1").has_limit());
}

/// promise: T6
#[test]
fn new_instances_go_where_they_fit() {
    let mut cluster = TestCluster::empty();
    apply(&mut cluster, &Fleet::parse(FILE).unwrap(), UnlistedObjects::Keep);
    let larger = Fleet::parse(&FILE.replace("instances = 3", "instances = 4")).unwrap();
    apply(&mut cluster, &larger, UnlistedObjects::Keep);
    assert_eq!(["h1", "h2"].map(|host| room(&cluster, host).cpu_words()), ["8 of 8", "4 of 4"]);
    let too_large = Fleet::parse(&FILE.replace("instances = 3", "instances = 5")).unwrap();
    let refused = cluster.difference(&too_large, UnlistedObjects::Keep).unwrap_err().to_string();
    assert!(refused.contains("1 of 1 do not fit; each needs 2 CPUs\n"), "{refused}");
    let anywhere = FILE.replace("instances = 3", "instances = 20");
    let anywhere = anywhere.replace("placement = { hosts = [\"h1\", \"h2\"] }", "");
    apply(&mut cluster, &Fleet::parse(&anywhere).unwrap(), UnlistedObjects::Keep);
    assert_eq!(["h1", "h2", "h3"].map(|host| room(&cluster, host).used_cpus), [8, 4, 32]);
}

/// promise: T1
#[test]
fn a_size_that_is_no_size_is_refused() {
    for wrong in ["cpus = 0", "cpus = 70000", "cpus = -1", "memory = \"8GB\"", "memory = 8"] {
        let text = format!("[[host]]\nname = 'h'\n{wrong}\n");
        assert!(Fleet::parse(&text).is_err(), "{wrong}");
    }
    let error = Fleet::parse("[[host]]\nname = 'h'\nmemory = '8GB'\n").unwrap_err().to_string();
    assert!(error.contains("write 512MiB, 8GiB or 2TiB"), "{error}");
}
