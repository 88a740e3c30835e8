import { useParams } from "react-router";

import { TopicFrame } from "../topic/TopicFrame";
import { MessageBrowser } from "./MessageBrowser";

export function MessagesPage() {
  const { name = "" } = useParams();
  return (
    <TopicFrame name={name} part="messages">
      {(detail) => <MessageBrowser key={name} topic={name} partitionCount={detail.topic.partitionCount} />}
    </TopicFrame>
  );
}
