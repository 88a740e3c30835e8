import type { Liveness } from "../api/events";
import { Time } from "../components/figures";
import { useLiveness, useOverview } from "./live";
import classes from "./Shell.module.css";

const WORDS: Record<Liveness, string> = {
  connecting: "Connecting",
  live: "Live",
  reconnecting: "Reconnecting, asking every 5 s",
  offline: "The console cannot be reached",
};

/** Whether what is on the page is of now, and of when it is if not. */
export function LiveMark() {
  const liveness = useLiveness();
  const { data: overview } = useOverview();
  return (
    <span className={classes.live}>
      <span className={classes.liveDot} data-liveness={liveness} aria-hidden />
      <span role="status">{WORDS[liveness]}</span>
      {liveness === "offline" && overview && (
        <span>
          as of <Time ms={overview.asOfMs} />
        </span>
      )}
    </span>
  );
}
