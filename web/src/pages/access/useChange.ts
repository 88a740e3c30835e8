/** A mutation of ACLs, users or quotas: shows a notification and refetches the table. */

import { useMutation, useQueryClient } from "@tanstack/react-query";

import { notifySuccess } from "../../components/notify";

interface Change<Request> {
  send: (request: Request) => Promise<unknown>;
  /** Key of the query to refetch: `acls`, `users` or `quotas`. */
  queryKey: string;
  message: (request: Request) => string;
  onDone?: () => void;
}

export function useChange<Request>({ send, queryKey, message, onDone }: Change<Request>) {
  const client = useQueryClient();
  return useMutation<unknown, Error, Request>({
    mutationFn: send,
    onSuccess: async (_response, request) => {
      notifySuccess(message(request));
      onDone?.();
      await client.invalidateQueries({ queryKey: [queryKey] });
    },
  });
}
