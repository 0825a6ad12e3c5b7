import type { Command } from 'commander';
import type { Webhook } from '../../history/service/webhooks.ts';
import { usageError, type Io, printList } from '../io.ts';
import { commandOf } from '../options.ts';
import { createWebhook } from './create.ts';
import { deleteWebhook } from './delete.ts';
import {
  COMMON,
  CREATE,
  type CreateFlags,
  DELETE,
  type DeleteFlags,
  ROTATE,
  type RotateFlags,
  type TeamFlags,
  TEST,
  type TestFlags,
} from './options.ts';
import { retireSecrets } from './retire.ts';
import { rotateWebhook } from './rotate.ts';
import { testWebhook } from './send-test.ts';
import { withSession, withTeam } from './session.ts';

const HELP = `
Examples:
  millrace webhooks list
  millrace webhooks create --url https://events.acme.example/webhooks --events labtest. --events lab_report.
  millrace webhooks test
  millrace webhooks rotate
  millrace webhooks rotate --retire
  millrace webhooks delete 6b0e9a52-0000-4000-8000-0000000000aa --yes

Manages the team's webhooks at the service, with a Management Key: MILLRACE_SERVICE_MANAGEMENT_KEY or service.managementKey. The
team is --team, else the only one in envelope.teams, else the only one of the key.

Secrets are stored where signing.secrets reads them: in a file ('\${file:./webhook-secret}'), or in a variable that .env or --env-file
sets. They are made here, written with mode 0600, and printed only with --show-secret. A new secret is stored, and the running
receiver has read it, before the service gets it. If the receiver reads a variable, reload or restart it when the command says so,
then run the command again. A command that was killed is completed by running it again; <file>.webhooks.json keeps its state.
create --keep-secret stores nothing: it gives the service the newest stored secret, also one of a variable that is set elsewhere.

rotate stores a new secret in front of the old one, and both are accepted. rotate --retire removes old secrets that no delivery has
needed for --unused-for, by the counts of the receiver on this machine (\`millrace status\`).

test sends a signed event of type millrace.test, of a made-up user, to the address at the service, with its secret. It is routed
like any other event; the route { match: [millrace.test], to: [] } keeps it out of your sinks.

Exit codes: 0 done, 1 failed (test: not accepted), 2 usage or config, or another command is changing the secrets, 3 not over: the
receiver has not read the secret yet, or an old one is still used.`;

export function webhooksCommand(io: Io): Command {
  const list = commandOf('list', COMMON, HELP)
    .description('list the webhooks of the team')
    .action((flags: TeamFlags) =>
      withTeam(io, flags, async ({ service, id }) => {
        const webhooks = (await service.webhooks.list(id)).data.map(withoutSecret);
        printList(io, flags, webhooks, ['ID', 'URL', 'EVENTS', 'STATE'], (webhook) => [
          webhook.id,
          webhook.url,
          (webhook.event_types ?? []).join(', ') || 'all',
          webhook.disabled === true ? 'disabled' : 'enabled',
        ]);
      }),
    );
  const create = commandOf('create', CREATE, HELP)
    .description('create a webhook and store its secret')
    .action((flags: CreateFlags) => withSession(io, flags, (session) => createWebhook(session, flags)));
  const rotate = commandOf('rotate', ROTATE, HELP)
    .description('give a webhook a new secret, or retire old ones')
    .argument('[webhook]', 'id or address (default: the only one; with --retire: all)')
    .action((webhook: string | undefined, flags: RotateFlags) => {
      if (flags.force === true && flags.retire !== true) throw usageError('--force goes with --retire');
      const work = flags.retire === true ? retireSecrets : rotateWebhook;
      return withSession(io, flags, (session) => work(session, webhook, flags));
    });
  const test = commandOf('test', TEST, HELP)
    .description('send a signed test event where the service sends them')
    .argument('[webhook]', 'id or address (default: the only one)')
    .action((webhook: string | undefined, flags: TestFlags) =>
      withTeam(io, flags, (team) => testWebhook(io, team, webhook, flags)),
    );
  const remove = commandOf('delete', DELETE, HELP)
    .description('delete a webhook, and what waits for it')
    .argument('<webhook>', 'id or address')
    .action((webhook: string, flags: DeleteFlags) => deleteWebhook(io, webhook, flags));
  return commandOf('webhooks', {}, HELP)
    .description("manage the team's webhooks at the service, and their signing secrets here")
    .addCommand(list)
    .addCommand(create)
    .addCommand(rotate)
    .addCommand(test)
    .addCommand(remove);
}

/** Without any member whose name has `secret` in it. */
function withoutSecret(webhook: Webhook): Webhook {
  const fields = Object.entries(webhook).filter(([name]) => !/secret/i.test(name));
  return { ...Object.fromEntries(fields), id: webhook.id, url: webhook.url };
}
