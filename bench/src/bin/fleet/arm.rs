//! Scale sets that a client of Azure Resource Manager creates, through the operator API.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use forewarn_bench::LoadResult;
use forewarn_bench::http::Connection;
use forewarn_bench::load::PATIENCE;

use crate::arguments::Arguments;
use crate::{FLEET, connect};

const INSTANCES: u32 = 1_000;
const LOCATION: &str = "fleet-location";
const GROUP: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/bench";
const VERSION: &str = "?api-version=2024-07-01";
const GROUP_VERSION: &str = "?api-version=2021-04-01";
const LOOK_INTERVAL: Duration = Duration::from_millis(5);
/// The unit of CPU times in `/proc/…/stat`, which programs can rely on.
const TICK: Duration = Duration::from_millis(10);

/// Creates scale sets of 1,000 instances, one after the other, and removes each. Counts the CPU time of the server
/// from the request to the end of its operation.
pub(crate) fn put(arguments: &Arguments) -> LoadResult<String> {
    let mut connection = connect(arguments, &arguments.token)?;
    // A group is created in the cluster of its location.
    let site = format!("{{\"location\":\"{LOCATION}\"}}");
    connection.send("PATCH", &format!("/v1/site?cluster={FLEET}"), &site)?;
    connection.send("PUT", &format!("{GROUP}{GROUP_VERSION}"), &site)?;
    let (mut wall, mut cpu) = (Duration::ZERO, Duration::ZERO);
    for round in 0..arguments.count {
        let set = format!("{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/set-{round}{VERSION}");
        let (begin, before) = (Instant::now(), cpu_time(arguments.process)?);
        connection.send("PUT", &set, &body())?;
        wait(|| Ok(connection.send("GET", &set, "")?.contains("\"provisioningState\":\"Succeeded\"")))?;
        wall += begin.elapsed();
        cpu += cpu_time(arguments.process)?.saturating_sub(before);
        connection.send("DELETE", &set, "")?;
        wait(|| is_gone(&mut connection, &set))?;
    }
    Ok(format!(
        "{{\"rounds\":{},\"nanoseconds\":{},\"cpu_nanoseconds\":{}}}",
        arguments.count,
        wall.as_nanos(),
        cpu.as_nanos()
    ))
}

fn body() -> String {
    format!(
        "{{\"location\":\"{LOCATION}\",\"sku\":{{\"name\":\"Standard_D2s_v3\",\"tier\":\"Standard\",\
         \"capacity\":{INSTANCES}}},\"properties\":{{\"orchestrationMode\":\"Uniform\",\"overprovision\":false,\
         \"singlePlacementGroup\":false,\"upgradePolicy\":{{\"mode\":\"Manual\"}},\"virtualMachineProfile\":{{\
         \"osProfile\":{{\"computerNamePrefix\":\"web\",\"adminUsername\":\"azureuser\"}},\"storageProfile\":{{\
         \"imageReference\":{{\"publisher\":\"Canonical\",\"offer\":\"UbuntuServer\",\"sku\":\"18.04-LTS\",\
         \"version\":\"latest\"}}}}}}}}}}"
    )
}

fn is_gone(connection: &mut Connection<TcpStream>, set: &str) -> LoadResult<bool> {
    match connection.send("GET", set, "") {
        Ok(_) => Ok(false),
        Err(error) if error.to_string().contains("HTTP/1.1 404") => Ok(true),
        Err(error) => Err(error),
    }
}

fn wait(mut is_done: impl FnMut() -> LoadResult<bool>) -> LoadResult<()> {
    let begin = Instant::now();
    while !is_done()? {
        if begin.elapsed() > PATIENCE {
            return Err("the operation does not end".into());
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    Ok(())
}

/// CPU time of a process, in user mode and in the kernel.
fn cpu_time(process: u32) -> LoadResult<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').ok_or("no CPU time")?;
    let mut times = fields.split_ascii_whitespace().skip(11).map(str::parse::<u32>);
    match (times.next(), times.next()) {
        (Some(Ok(user)), Some(Ok(system))) => Ok(TICK * user + TICK * system),
        _ => Err("no CPU time".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_cpu_time() {
        assert!(cpu_time(std::process::id()).is_ok());
        assert!(
            body().contains("\"capacity\":1000")
                && body().matches('{').count() == body().matches('}').count()
        );
    }
}
