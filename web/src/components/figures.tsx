/** Figures on pages: short to read, with the exact one in the title. */
import { useEffect, useState } from "react";

import { bytes, byteRate, compact, count, exactTime, relativeTime, UNKNOWN } from "../lib/format";

type Maybe = number | null | undefined;

const isKnown = (value: Maybe): value is number => value !== null && value !== undefined;

export function Bytes({ value }: { value: Maybe }) {
  return <span title={isKnown(value) ? `${count(value)} bytes` : "not known"}>{bytes(value)}</span>;
}

export function ByteRate({ value }: { value: Maybe }) {
  return <span title={isKnown(value) ? `${count(value)} bytes per second` : "not known"}>{byteRate(value)}</span>;
}

/** Exact below a million, because people compare offsets and counts digit by digit. */
export function Count({ value }: { value: Maybe }) {
  return <span title={isKnown(value) ? count(value) : "not known"}>{isKnown(value) && value >= 1_000_000 ? compact(value) : count(value)}</span>;
}

/** "3 min ago", going on by itself. */
export function Time({ ms }: { ms: Maybe }) {
  const now = useNow();
  if (!isKnown(ms)) return <span title="not known">{UNKNOWN}</span>;
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
  // A value that just came may be newer than the last tick.
  return Math.max(now, Date.now());
}
