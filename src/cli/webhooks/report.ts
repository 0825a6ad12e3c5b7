import { EXIT } from '../../core/errors.ts';
import type { Webhook } from '../../history/service/webhooks.ts';
import { note, printResult } from '../io.ts';
import type { Acceptance } from './receiver.ts';
import type { Session } from './session.ts';

export type Action = 'created' | 'finished' | 'unchanged' | 'rotated' | 'stored';

export interface Done {
  readonly action: Action;
  readonly webhook: Pick<Webhook, 'id' | 'url' | 'event_types'> | null;
  readonly secret: string;
  readonly receiver: Acceptance;
}

const WORDS: Readonly<Record<Action, string>> = {
  created: 'created',
  finished: 'finished what an earlier run had begun',
  unchanged: 'is there already; nothing was changed',
  rotated: 'signs with the new secret, for a while with the old one too',
  stored: 'the secret is stored, the service does not have it yet',
};

/** Prints the result, with the secret only for --show-secret. */
export function report({ io, store, flags, id: team }: Session, done: Done): void {
  const { action, webhook, secret, receiver } = done;
  const shown = flags.showSecret === true ? { secret } : {};
  const { id = null, url = null, event_types = [] } = webhook ?? {};
  const what = { action, webhook_id: id, url, event_types, team_id: team };
  printResult(
    io,
    flags,
    { ...what, secret_in: store.name, ...shown, receiver },
    `${webhook === null ? '' : `${webhook.id} ${webhook.url}: `}${WORDS[action]}`,
    `secret in ${store.name}`,
    ...Object.values(shown),
  );
  if (receiver.state === 'stale')
    note(io, `the receiver on this machine does not accept it yet: ${receiver.reason}`);
  else if (receiver.state === 'absent')
    note(io, 'no receiver runs here with this config: reload it elsewhere (kill -HUP), or restart it');
}

/** False while the receiver on this machine would refuse the new secret; the same command continues later. */
export function mayProceed(session: Session, receiver: Acceptance, secret: string): boolean {
  if (receiver.state !== 'stale' || session.flags.now === true) return true;
  report(session, { action: 'stored', webhook: null, secret, receiver });
  note(session.io, 'then run this command again; --now does not wait for the receiver');
  session.io.setExit(EXIT.partial);
  return false;
}
