/** One change to who may do what: a sentence afterwards, and the tables read again. */

import { useMutation, useQueryClient } from "@tanstack/react-query";

import { notifyDone } from "../../components/notify";

interface Change<Asked> {
  send: (asked: Asked) => Promise<unknown>;
  /** Which tables it shows in: `acls`, `users` or `quotas`. */
  shownIn: string;
  done: (asked: Asked) => string;
  onDone?: () => void;
}

export function useChange<Asked>({ send, shownIn, done, onDone }: Change<Asked>) {
  const client = useQueryClient();
  return useMutation<unknown, Error, Asked>({
    mutationFn: send,
    onSuccess: async (_answer, asked) => {
      notifyDone(done(asked));
      onDone?.();
      await client.invalidateQueries({ queryKey: [shownIn] });
    },
  });
}
