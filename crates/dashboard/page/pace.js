// The pace of a page that draws itself: a little in each frame, and not more often than people read.

/**
 * Steps that together draw the present state. `request()` runs them, one in each frame; then a pause follows, in which all other
 * requests become one. `now()` runs them at once, and `close()` ends it.
 */
export function paced(pause, steps) {
  let [frame, timer, isWanted] = [0, 0, false];
  const stop = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    [frame, timer, isWanted] = [0, 0, false];
  };
  const rest = () => {
    timer = setTimeout(() => {
      timer = 0;
      if (isWanted) frame = requestAnimationFrame(() => run(0));
    }, pause);
  };
  const run = (index) => {
    frame = 0;
    // What is requested after the first step may be missing in it.
    if (index === 0) isWanted = false;
    steps[index]();
    if (index + 1 < steps.length) frame = requestAnimationFrame(() => run(index + 1));
    else rest();
  };
  return {
    request() {
      if (frame || timer) isWanted = true;
      else run(0);
    },
    now() {
      stop();
      for (const step of steps) step();
      rest();
    },
    close: stop,
  };
}
