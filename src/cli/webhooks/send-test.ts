import { randomUUID } from 'node:crypto';
import { EXIT, MillraceError } from '../../core/errors.ts';
import { membersIn } from '../../lib/parsed.ts';
import { newDeliveryId } from '../../sandbox/made-up-events.ts';
import { signStandardWebhooks } from '../../receive/verify/sign-standard-webhooks.ts';
import { closing, note, printResult, type Io } from '../io.ts';
import { Sender } from '../sender.ts';
import type { TestFlags } from './options.ts';
import { findWebhook, secretAtService, type Team } from './session.ts';

/** Sends a test event as the service would, to its address and signed with its secret. */
export async function testWebhook(
  io: Io,
  team: Team,
  wanted: string | undefined,
  flags: TestFlags,
): Promise<void> {
  const webhook = await findWebhook(team, wanted);
  const secret = await secretAtService(team, webhook.id);
  if (secret === null)
    throw new MillraceError(
      'secret_missing',
      `the service does not show the secret of ${webhook.id}: use \`millrace send\``,
    );
  const { url = webhook.url, type } = flags;
  const id = newDeliveryId();
  const event = {
    event_type: type,
    data: {},
    team_id: team.id,
    user_id: randomUUID(),
    client_user_id: 'millrace-test',
  };
  const body = Buffer.from(JSON.stringify(event));
  await using sender = closing(new Sender(url, 1));
  const began = performance.now();
  const answer = await sender.send({ headers: signStandardWebhooks(secret, id, Date.now(), body), body });
  const ms = Math.round(performance.now() - began);
  const outcome = outcomeOf(answer.body);
  const ok = answer.status < 300 && outcome !== 'quarantined';
  const shown = { webhook_id: webhook.id, url, id, event_type: type, http: answer.status, outcome, ms, ok };
  printResult(io, flags, shown, `${url}: ${answer.status} ${outcome}, ${ms} ms, event ${id}`);
  if (webhook.disabled === true) note(io, `the service has disabled ${webhook.id}: it sends nothing there`);
  io.setExit(ok && webhook.disabled !== true ? EXIT.done : EXIT.failed);
}

/** The outcome in millrace's answer, or the beginning of another receiver's answer. */
function outcomeOf(body: string): string {
  const { status, code, title } = membersIn(body);
  const word = [status, code, title].find((each) => typeof each === 'string');
  return word ?? (body.slice(0, 100).trim() || 'no body');
}
