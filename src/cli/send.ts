import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { isDeliveryId } from '../core/delivery-id.ts';
import { EXIT, MillraceError } from '../core/errors.ts';
import { splitSecrets } from '../core/secrets.ts';
import { madeUpEvent, newDeliveryId } from '../sandbox/made-up-events.ts';
import { signStandardWebhooks } from '../verify/sign-standard-webhooks.ts';
import { note, print, usageError, type Io } from './io.ts';
import { httpUrl, option, readAs, wholeNumber } from './options.ts';
import { Sender } from './sender.ts';

const HELP = `
Examples:
  MILLRACE_SECRET=whsec_… millrace send
  millrace send --type lab_report.parsing_job.created --count 100
  millrace send --file event.json --id msg_made_up_1 --url http://127.0.0.1:8080/webhooks

Signs with MILLRACE_SECRET by the standard-webhooks scheme. Without --file it makes up the events.
Prints one line of JSON per answer. Exit codes: 0 every event was accepted, 1 some were not.`;

interface Options {
  readonly url: string;
  readonly type?: string;
  readonly file?: string;
  readonly id?: string;
  readonly count: number;
}

/** `millrace send`: signs events and posts them to a receiver, to try a setup end to end. */
export function sendCommand(io: Io): Command {
  return new Command('send')
    .description('sign events and post them to a receiver')
    .addOption(option('--url <url>', 'address of the receiver', httpUrl, 'http://127.0.0.1:8080/webhooks'))
    .option('--type <type>', 'event type of the made-up events (default: the documented types in turn)')
    .option('--file <file>', 'send this file as the body, unchanged')
    .option('--id <id>', 'delivery id (default: a new one for each event)')
    .addOption(option('--count <n>', 'how many', wholeNumber(1), '1'))
    .addHelpText('after', HELP)
    .action(async (options: Options) => {
      const [secret] = splitSecrets(io.env['MILLRACE_SECRET'] ?? '');
      if (secret === undefined) {
        throw new MillraceError('secret_missing', 'set MILLRACE_SECRET to the secret the receiver has');
      }
      const { url, count } = options;
      if (options.id !== undefined && !isDeliveryId(options.id))
        throw usageError('--id must be 1 to 256 visible ASCII characters');
      const sender = new Sender(url, Math.min(count, 16));
      let refused = 0;
      try {
        const answers: Promise<void>[] = [];
        for (let n = 0; n < count && !io.signal.aborted; n += 1) {
          await sender.room(64);
          const { id, body } = eventOf(options, n);
          const headers = signStandardWebhooks(secret, id, Date.now(), body);
          const answered = sender.send({ headers, body }).then(({ status, body: answer }) => {
            if (status >= 300) refused += 1;
            print(io, JSON.stringify({ id, http: status, answer: parse(answer) }));
          });
          answered.catch(() => undefined);
          answers.push(answered);
        }
        await Promise.all(answers);
      } finally {
        await sender.close();
      }
      if (refused > 0) note(io, `${refused} of ${count} were not accepted`);
      io.setExit(refused === 0 ? EXIT.done : EXIT.failed);
    });
}

function eventOf(options: Options, n: number): { id: string; body: Buffer } {
  if (options.file === undefined) {
    const event = options.type === undefined ? madeUpEvent(n) : madeUpEvent(n, options.type);
    return { id: options.id ?? event.id, body: event.body };
  }
  return {
    id: options.id ?? newDeliveryId(),
    body: readAs('--file', options.file, (file) => readFileSync(file)),
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
