// Starts a server and a program, says where both listen, and never ends by itself.

import { startForewarn } from "forewarn-test";

const SERVICE = `
require("node:net").createServer().listen(0, "127.0.0.1", function () { console.log(this.address().port); });
`;

const forewarn = await startForewarn();
const program = await forewarn.run([process.execPath, "-e", SERVICE]);
while (!program.output.endsWith("\n")) {
    await new Promise((resolve) => setTimeout(resolve, 10));
}
console.log(JSON.stringify([Number(new URL(forewarn.api.url).port), Number(program.output)]));
if (process.argv[2] === "crash") {
    process.nextTick(() => {
        throw new Error("on purpose");
    });
}
setInterval(() => {}, 60_000);
