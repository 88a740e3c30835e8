/** Numbers in a short form, with the exact value in the title. */
import { useEffect, useState } from "react";

import { bytes, byteRate, compact, count, exactTime, relativeTime, UNKNOWN } from "../lib/format";

type Maybe = number | null | undefined;

const isKnown = (value: Maybe): value is number => value !== null && value !== undefined;

export function Bytes({ value }: { value: Maybe }) {
  return <span title={isKnown(value) ? `${count(value)} bytes` : "unknown"}>{bytes(value)}</span>;
}

export function ByteRate({ value }: { value: Maybe }) {
  return <span title={isKnown(value) ? `${count(value)} bytes per second` : "unknown"}>{byteRate(value)}</span>;
}

/** Exact below a million, so that counts can be compared. */
export function Count({ value }: { value: Maybe }) {
  return <span title={isKnown(value) ? count(value) : "unknown"}>{isKnown(value) && value >= 1_000_000 ? compact(value) : count(value)}</span>;
}

/** "3 min ago", updated while it is shown. */
export function Time({ ms }: { ms: Maybe }) {
  const now = useNow();
  if (!isKnown(ms)) return <span title="unknown">{UNKNOWN}</span>;
  return (
    <time dateTime={new Date(ms).toISOString()} title={exactTime(ms)}>
      {relativeTime(ms, now)}
    </time>
  );
}

function useNow(everyMs = 5_000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const tick = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(tick);
  }, [everyMs]);
  // A new value may be newer than the last tick.
  return Math.max(now, Date.now());
}
