import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import "./app/global.css";

import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createBrowserRouter } from "react-router";

import { App } from "./app/App";
import { newQueryClient } from "./app/queries";
import { routes } from "./app/routes";

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no element with the id root.");

createRoot(root).render(
  <StrictMode>
    <App router={createBrowserRouter(routes)} queryClient={newQueryClient()} />
  </StrictMode>,
);
