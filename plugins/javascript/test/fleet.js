// What several test files use: a small fleet, and a service that approves all that it reads.

export const FLEET = {
    host: [{ name: "h1" }, { name: "h2" }],
    vm: [
        { name: "svc", host: "h1", tags: { role: 'a "quoted" one' } },
        { name: "my-db", host: "h2" },
    ],
};

/** Two tenants have a machine of the same name, on the same host. */
export const TWO_TENANTS = {
    host: [{ name: "h1" }],
    availability_set: [
        { name: "a", machine: [{ name: "web_0", host: "h1" }] },
        { name: "b", machine: [{ name: "web_0", host: "h1" }] },
    ],
};

export const SERVICE = `
const url = process.env.FOREWARN_METADATA + "/metadata/scheduledevents?api-version=2020-07-01";
const headers = { Metadata: "true" };
async function turn() {
    const { Events } = await (await fetch(url, { headers })).json();
    for (const event of Events.filter((event) => event.EventStatus === "Scheduled")) {
        console.log("approving", event.EventType);
        await fetch(url, { method: "POST", headers, body: JSON.stringify({ StartRequests: [{ EventId: event.EventId }] }) });
    }
    setTimeout(turn, 20);
}
turn();
`;
