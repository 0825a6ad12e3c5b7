import type { Command } from 'commander';
import { parseDuration } from '../../lib/units.ts';
import type { Webhook } from '../../history/service/webhooks.ts';
import { usageError, type Io, printList } from '../io.ts';
import { commandOf, httpUrl, type OptionsOf, readBy, repeated, required, textOr } from '../options.ts';
import { createWebhook } from './create.ts';
import { deleteWebhook } from './delete.ts';
import { retireSecrets } from './retire.ts';
import { rotateWebhook } from './rotate.ts';
import { testWebhook } from './send-test.ts';
import { withSession, withTeam } from './session.ts';
import { MANAGEMENT_OPTIONS } from '../service.ts';
import { CONFIG } from '../config-options.ts';

const HELP = `
Examples:
  millrace webhooks list
  millrace webhooks create --url https://events.acme.example/webhooks --events labtest. --events lab_report.
  millrace webhooks test
  millrace webhooks rotate
  millrace webhooks rotate --retire
  millrace webhooks delete 6b0e9a52-0000-4000-8000-0000000000aa --yes

Manages the team's webhooks at the service. The key is a Management Key: MILLRACE_SERVICE_MANAGEMENT_KEY or
service.managementKey. The team is --team, else the only one in envelope.teams, else the only one that the key reaches.

Secrets are stored where signing.secrets has them from: a file ('\${file:./webhook-secret}'), or a variable that .env or
--env-file sets. They are random, made here, written with mode 0600 as a whole, and never printed without --show-secret.
Those that are there stay. create --keep-secret writes none: it gives the service
the newest one that is there, also of a variable that is set elsewhere. A secret is stored, and the receiver that runs here has read it, before the service gets it. A
command that was killed is finished by running it again; ids of webhooks and times are in <file>.webhooks.json.

rotate stores a new secret in front of the old one, and both are accepted. rotate --retire removes old ones that no
delivery has needed for --unused-for, by the counts of the running receiver (\`millrace status\`). Variables are read at the
start of a receiver, those of its .env at a reload too: reload or restart it when told to, then run the command again. Of several replicas, the one that runs here is
asked.

test sends a signed event of type millrace.test, of a made-up user, to the address that the service has, with its secret. It
is routed like any other; the route { match: [millrace.test], to: [] } keeps it out of your sinks.

Exit codes: 0 done, 1 failed (test: not accepted), 2 usage or config, or another command is changing the secrets, 3 not over:
the receiver has not read the secret yet, or an old one is still used.`;

const COMMON = {
  ...MANAGEMENT_OPTIONS,
  ...CONFIG,
  '--team <id>': 'the team (default: that of the config or the key)',
  '--json': 'print JSON',
};
const STORING = {
  ...COMMON,
  '--secret-file <file>': 'the file of secrets, one a line (default: what signing.secrets names)',
  '--env-file <file>': 'the file that sets the variable of signing.secrets (default: .env)',
  '--no-reload': 'do not have the running receiver read the secrets',
};
const GIVING = {
  ...STORING,
  '--now': 'do not wait until the running receiver accepts the new secret',
  '--show-secret': 'print the secret',
};
const CREATE = {
  ...GIVING,
  '--url <url>': required(readBy(httpUrl, 'where events are sent to')),
  '--events <prefix>': repeated('only event types that begin with it; may be repeated (default: all)'),
  '--keep-secret': 'give the service the newest stored secret, instead of a new one',
};
const ROTATE = {
  ...GIVING,
  '--again': 'although the old secret of the last rotation is not retired',
  '--retire': 'remove old secrets that no delivery needs any more',
  '--unused-for <duration>': readBy(parseDuration, 'how long an old secret must not have been needed', '1d'),
  '--force': 'with --retire: whatever the counts say',
};
const TEST = {
  ...COMMON,
  '--url <url>': readBy(httpUrl, 'send it there instead'),
  '--type <type>': textOr('millrace.test', 'event type'),
};
const DELETE = { ...STORING, '--yes': 'do not ask', '--forget-secret': 'remove its secret here too' };

export function webhooksCommand(io: Io): Command {
  const list = commandOf('list', COMMON, HELP)
    .description('list the webhooks of the team')
    .action((flags: OptionsOf<typeof COMMON>) =>
      withTeam(io, flags, async ({ service, id }) => {
        const data = (await service.webhooks.list(id)).data.map(withoutSecret);
        printList(io, flags, data, ['ID', 'URL', 'EVENTS', 'STATE'], (webhook) => [
          webhook.id,
          webhook.url,
          (webhook.event_types ?? []).join(', ') || 'all',
          webhook.disabled === true ? 'disabled' : 'enabled',
        ]);
      }),
    );
  const create = commandOf('create', CREATE, HELP)
    .description('create a webhook and store its secret')
    .action((flags: OptionsOf<typeof CREATE>) =>
      withSession(io, flags, (session) =>
        createWebhook(session, {
          url: flags.url,
          eventTypes: flags.events ?? [],
          keepSecret: flags.keepSecret === true,
        }),
      ),
    );
  const rotate = commandOf('rotate', ROTATE, HELP)
    .description('give a webhook a new secret, or retire old ones')
    .argument('[webhook]', 'id or address (default: the only one; with --retire: all)')
    .action((webhook: string | undefined, flags: OptionsOf<typeof ROTATE>) => {
      if (flags.force === true && flags.retire !== true) throw usageError('--force goes with --retire');
      return withSession(io, flags, (session) =>
        flags.retire === true
          ? retireSecrets(session, webhook, { unusedFor: flags.unusedFor, force: flags.force === true })
          : rotateWebhook(session, webhook, flags.again === true),
      );
    });
  const test = commandOf('test', TEST, HELP)
    .description('send a signed test event where the service sends them')
    .argument('[webhook]', 'id or address (default: the only one)')
    .action((webhook: string | undefined, flags: OptionsOf<typeof TEST>) =>
      withTeam(io, flags, (team) => testWebhook(io, team, webhook, flags)),
    );
  const remove = commandOf('delete', DELETE, HELP)
    .description('delete a webhook, and what waits for it')
    .argument('<webhook>', 'id or address')
    .action((webhook: string, flags: OptionsOf<typeof DELETE>) => deleteWebhook(io, webhook, flags));
  return commandOf('webhooks', {}, HELP)
    .description("manage the team's webhooks at the service, and their signing secrets here")
    .addCommand(list)
    .addCommand(create)
    .addCommand(rotate)
    .addCommand(test)
    .addCommand(remove);
}

/** Whatever the service calls it. */
function withoutSecret(webhook: Webhook): Webhook {
  const fields = Object.entries(webhook).filter(([name]) => !/secret/i.test(name));
  return { ...Object.fromEntries(fields), id: webhook.id, url: webhook.url };
}
