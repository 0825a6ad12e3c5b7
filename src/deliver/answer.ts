import { DELIVERED, type SendResult } from '../core/sink.ts';

/** Longest wait that a sink may ask for, milliseconds: after an hour it is worth a try, whatever was said. */
export const LONGEST_DELAY = 3_600_000;

/**
 * What a sink has answered, as plain results that nobody else holds. Sinks are written by strangers: an answer that cannot be
 * read counts as none, for the event it was for or, when the number is wrong, for all.
 * @throws Error that says what is wrong with the answer as a whole
 */
export function readAnswer(answer: unknown, count: number): SendResult[] {
  if (!Array.isArray(answer)) throw new Error(`the sink answered ${nameOf(answer)} instead of results`);
  if (answer.length !== count)
    throw new Error(`the sink answered ${answer.length} results for ${count} events`);
  const results: SendResult[] = [];
  for (let at = 0; at < count; at += 1) results.push(readResult(answer[at]));
  return results;
}

function readResult(result: unknown): SendResult {
  if (result === DELIVERED) return DELIVERED;
  if (typeof result !== 'object' || result === null) return unreadable(nameOf(result));
  const { status, until, reason, code, delayMs, sink, untried, batch } = result as Record<string, unknown>;
  if (status === 'delivered') return DELIVERED;
  if (status === 'held')
    return until instanceof Promise ? { status, until } : unreadable('held, without a promise');
  if (status === 'retry') {
    const wait = readDelay(delayMs);
    return {
      status,
      reason: typeof reason === 'string' ? reason : 'the sink gave no reason',
      ...(wait === null ? {} : { delayMs: wait }),
      ...(sink === true ? { sink } : {}),
      ...(untried === true ? { untried } : {}),
    };
  }
  if (status !== 'refused') return unreadable(`the status ${nameOf(status)}`);
  // A refusal is for good, so it has to say what it is for.
  if (typeof code !== 'string' || typeof reason !== 'string')
    return unreadable('a refusal without code and reason');
  return { status, code, reason, ...(batch === true ? { batch } : {}) };
}

/** Null for what is no time to wait: a timer would take it for none at all, and the retries would be a storm. */
function readDelay(delayMs: unknown): number | null {
  if (typeof delayMs !== 'number' || Number.isNaN(delayMs) || delayMs < 0) return null;
  return Math.min(delayMs, LONGEST_DELAY);
}

function unreadable(what: string): SendResult {
  return { status: 'retry', reason: `the sink answered ${what}`, sink: true };
}

/** Never the value itself, unless it is one word: it could be anything, a body too. */
function nameOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return typeof value === 'string' && /^\w{1,20}$/.test(value) ? value : `a value of type ${typeof value}`;
}
