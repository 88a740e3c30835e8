import type { RouteObject } from "react-router";

import { NotFound, RouteError } from "./RouteError";
import { Shell } from "./Shell";

/** Every page is a separate chunk that is loaded when it is first opened. */
export const routes: RouteObject[] = [
  {
    ErrorBoundary: RouteError,
    HydrateFallback: () => null,
    children: [
      { path: "login", lazy: async () => ({ Component: (await import("../pages/login/LoginPage")).LoginPage }) },
      {
        Component: Shell,
        children: [
          {
            // An error in a page keeps the layout around it.
            ErrorBoundary: RouteError,
            children: [
              { index: true, lazy: async () => ({ Component: (await import("../pages/overview/OverviewPage")).OverviewPage }) },
              { path: "brokers", lazy: async () => ({ Component: (await import("../pages/brokers/BrokersPage")).BrokersPage }) },
              { path: "brokers/:id", lazy: async () => ({ Component: (await import("../pages/brokers/BrokerPage")).BrokerPage }) },
              { path: "topics", lazy: async () => ({ Component: (await import("../pages/topics/TopicsPage")).TopicsPage }) },
              { path: "topics/:name", lazy: async () => ({ Component: (await import("../pages/topic/TopicPage")).TopicPage }) },
              { path: "topics/:name/messages", lazy: async () => ({ Component: (await import("../pages/messages/MessagesPage")).MessagesPage }) },
              { path: "groups", lazy: async () => ({ Component: (await import("../pages/groups/GroupsPage")).GroupsPage }) },
              { path: "groups/:name", lazy: async () => ({ Component: (await import("../pages/group/GroupPage")).GroupPage }) },
              { path: "transactions", lazy: async () => ({ Component: (await import("../pages/transactions/TransactionsPage")).TransactionsPage }) },
              { path: "access", lazy: async () => ({ Component: (await import("../pages/access/AccessPage")).AccessPage }) },
              { path: "pipeline", lazy: async () => ({ Component: (await import("../pages/pipeline/PipelinePage")).PipelinePage }) },
              { path: "etcd", lazy: async () => ({ Component: (await import("../pages/etcd/EtcdPage")).EtcdPage }) },
              { path: "*", Component: NotFound },
            ],
          },
        ],
      },
    ],
  },
];
