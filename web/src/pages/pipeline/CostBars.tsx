import type { TopicCost } from "../../api/contract";
import { money } from "../../lib/format";
import classes from "./CostBars.module.css";

interface Props {
  topics: TopicCost[];
  currency: string;
}

/** What each topic costs, as bars of one scale. */
export function CostBars({ topics, currency }: Props) {
  const most = Math.max(...topics.map(({ costPerDay }) => costPerDay), Number.MIN_VALUE);
  return (
    <div className={classes.bars}>
      {topics.map(({ topic, costPerDay }) => (
        <div key={topic} className={classes.row}>
          <span className={classes.name} title={topic}>
            {topic}
          </span>
          <span className={classes.track}>
            <span className={classes.bar} style={{ width: `${(100 * costPerDay) / most}%` }} />
          </span>
          <span className={classes.value}>{money(costPerDay, currency)}</span>
        </div>
      ))}
    </div>
  );
}
