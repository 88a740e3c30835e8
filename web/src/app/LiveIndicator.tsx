import type { Liveness } from "../api/events";
import { Time } from "../components/figures";
import { useLiveness, useOverview } from "./live";
import classes from "./Shell.module.css";

const LABELS: Record<Liveness, string> = {
  connecting: "Connecting",
  live: "Live",
  reconnecting: "Reconnecting, polling every 5 s",
  offline: "The console cannot be reached",
};

/** Shows if the page is current; when offline, also the time of the last update. */
export function LiveIndicator() {
  const liveness = useLiveness();
  const { data: overview } = useOverview();
  return (
    <span className={classes.live}>
      <span className={classes.liveDot} data-liveness={liveness} aria-hidden />
      <span role="status">{LABELS[liveness]}</span>
      {liveness === "offline" && overview && (
        <span>
          as of <Time ms={overview.asOfMs} />
        </span>
      )}
    </span>
  );
}
