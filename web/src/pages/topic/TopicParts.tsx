import { ScrollArea } from "@mantine/core";
import { Link } from "react-router";

import classes from "./TopicParts.module.css";

export const TOPIC_PARTS = {
  partitions: "Partitions",
  messages: "Messages",
  segments: "Segments",
  consumers: "Consumers",
  settings: "Settings",
} as const;

export type TopicPart = keyof typeof TOPIC_PARTS;

export function isPart(word: string | null): word is TopicPart {
  return word !== null && word in TOPIC_PARTS;
}

export function addressOf(name: string, part: TopicPart): string {
  const topic = `/topics/${encodeURIComponent(name)}`;
  if (part === "messages") return `${topic}/messages`;
  return part === "partitions" ? topic : `${topic}?part=${part}`;
}

/** Links rather than tabs: each part has an address, to be opened beside another and to be shared. */
export function TopicParts({ name, part }: { name: string; part: TopicPart }) {
  return (
    <nav aria-label="Parts of the topic">
      <ScrollArea type="never">
        <ul className={classes.list}>
          {Object.entries(TOPIC_PARTS).map(([each, label]) => (
            <li key={each}>
              <Link className={classes.link} to={addressOf(name, each as TopicPart)} aria-current={each === part ? "page" : undefined}>
                {label}
              </Link>
            </li>
          ))}
        </ul>
      </ScrollArea>
    </nav>
  );
}
