import { useEffect, useState } from "react";

/** A countdown in seconds, based on the clock, because timers of background tabs are throttled. */
export function useCountdown(): [number, (seconds: number) => void] {
  const [until, setUntil] = useState(0);
  const [now, setNow] = useState(Date.now);
  const left = Math.max(0, Math.ceil((until - now) / 1000));

  useEffect(() => {
    if (left === 0) return;
    const tick = setInterval(() => setNow(Date.now()), 250);
    return () => clearInterval(tick);
  }, [left]);

  function start(seconds: number) {
    setNow(Date.now());
    setUntil(Date.now() + seconds * 1000);
  }
  return [left, start];
}
