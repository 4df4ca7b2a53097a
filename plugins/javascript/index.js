// The entry of ES modules. The code is CommonJS, so that Jest loads it without experimental options.

import kit from "./lib/index.cjs";

export const { Forewarn, ForewarnError, ForewarnTimeout, Program, startForewarn, useForewarn } = kit;
