import { Command } from 'commander';
import { parseDuration } from '../../lib/units.ts';
import type { Webhook } from '../../service/webhooks.ts';
import { configOption } from '../config-options.ts';
import { usageError, type Io, printList } from '../io.ts';
import { collect, httpUrl, option } from '../options.ts';
import { serviceOptions } from '../service.ts';
import { createWebhook } from './create.ts';
import { deleteWebhook, type DeleteFlags } from './delete.ts';
import { retireSecrets } from './retire.ts';
import { rotateWebhook } from './rotate.ts';
import { testWebhook, type TestFlags } from './send-test.ts';
import { withSession, withTeam, type Flags, type StoreFlags } from './session.ts';

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

interface CreateFlags extends StoreFlags {
  readonly url: string;
  readonly events?: readonly string[];
}

interface RotateFlags extends StoreFlags {
  readonly again?: boolean;
  readonly retire?: boolean;
  readonly unusedFor: number;
  readonly force?: boolean;
}

export function webhooksCommand(io: Io): Command {
  const webhooks = new Command('webhooks')
    .description("manage the team's webhooks at the service, and their signing secrets here")
    .addHelpText('after', HELP);
  common(webhooks.command('list').description('list the webhooks of the team')).action((flags: Flags) =>
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
  giving(common(webhooks.command('create').description('create a webhook and store its secret')))
    .addOption(option('--url <url>', 'where events are sent to', httpUrl).makeOptionMandatory())
    .option(
      '--events <prefix>',
      'only event types that begin with it; may be repeated (default: all)',
      collect,
    )
    .option('--keep-secret', 'give the service the newest stored secret, instead of a new one')
    .action((flags: CreateFlags) =>
      withSession(io, flags, (session) =>
        createWebhook(session, {
          url: flags.url,
          eventTypes: flags.events ?? [],
          keepSecret: flags.keepSecret === true,
        }),
      ),
    );
  giving(common(webhooks.command('rotate').description('give a webhook a new secret, or retire old ones')))
    .argument('[webhook]', 'id or address (default: the only one; with --retire: all)')
    .option('--again', 'although the old secret of the last rotation is not retired')
    .option('--retire', 'remove old secrets that no delivery needs any more')
    .addOption(
      option(
        '--unused-for <duration>',
        'how long an old secret must not have been needed',
        parseDuration,
        '1d',
      ),
    )
    .option('--force', 'with --retire: whatever the counts say')
    .action((webhook: string | undefined, flags: RotateFlags) => {
      if (flags.force === true && flags.retire !== true) throw usageError('--force goes with --retire');
      return withSession(io, flags, (session) =>
        flags.retire === true
          ? retireSecrets(session, webhook, { unusedFor: flags.unusedFor, force: flags.force === true })
          : rotateWebhook(session, webhook, flags.again === true),
      );
    });
  common(webhooks.command('test').description('send a signed test event where the service sends them'))
    .argument('[webhook]', 'id or address (default: the only one)')
    .addOption(option('--url <url>', 'send it there instead', httpUrl))
    .option('--type <type>', 'event type', 'millrace.test')
    .action((webhook: string | undefined, flags: TestFlags) =>
      withTeam(io, flags, (team) => testWebhook(io, team, webhook, flags)),
    );
  storing(common(webhooks.command('delete').description('delete a webhook, and what waits for it')))
    .argument('<webhook>', 'id or address')
    .option('--yes', 'do not ask')
    .option('--forget-secret', 'remove its secret here too')
    .action((webhook: string, flags: DeleteFlags) => deleteWebhook(io, webhook, flags));
  for (const command of webhooks.commands) command.addHelpText('after', HELP);
  return webhooks;
}

/** Whatever the service calls it. */
function withoutSecret(webhook: Webhook): Webhook {
  const fields = Object.entries(webhook).filter(([name]) => !/secret/i.test(name));
  return { ...Object.fromEntries(fields), id: webhook.id, url: webhook.url };
}

function common(command: Command): Command {
  return serviceOptions(command, 'management')
    .addOption(configOption())
    .option('--team <id>', 'the team (default: that of the config or the key)')
    .option('--json', 'print JSON');
}

function storing(command: Command): Command {
  return command
    .option('--secret-file <file>', 'the file of secrets, one a line (default: what signing.secrets names)')
    .option('--env-file <file>', 'the file that sets the variable of signing.secrets (default: .env)')
    .option('--no-reload', 'do not have the running receiver read the secrets');
}

function giving(command: Command): Command {
  return storing(command)
    .option('--now', 'do not wait until the running receiver accepts the new secret')
    .option('--show-secret', 'print the secret');
}
