import { systemClock } from '../core/clock.ts';
import { messageOf, MillraceError } from '../core/errors.ts';
import { openTraces, type Traces } from '../metrics/otlp.ts';
import type { Admission } from '../receive/stages.ts';
import type { Receiver, ReceiverLoad, Replaceable } from '../receive/options.ts';
import { createReceiver } from '../receive/receiver.ts';
import { shareOf, type Settings } from './receiving.ts';
import { createValidatorFor } from '../validate/envelope.ts';
import { createVerifier } from '../verify/registry.ts';
import { Link } from './link.ts';
import type { Order, Report } from './protocol.ts';

/** How often connections are looked at, milliseconds. */
const LOAD_EVERY = 500;

/** What a worker may touch of its process. */
export interface WorkerIo {
  /** Resolves when the report has left this process. */
  send(report: Report): Promise<void>;
  onOrder(listener: (order: Order<Settings>) => void): void;
  exit(): void;
}

/**
 * One of several processes that receive: it has no journal, no sinks and no admin listener, and answers a sender when the
 * process that started it says that the event is durable. See workers/pool.ts.
 */
export function runWorker(io: WorkerIo): void {
  const send = (report: Report): void => void io.send(report);
  let receiver: Receiver | null = null;
  const link = new Link({
    send,
    load: () => loadOf(receiver),
  });
  let admission: Admission = { ok: true };
  let traces: Traces | null = null;

  const start = async (settings: Settings, port: number): Promise<void> => {
    const { host, path, reusePort } = settings.server;
    try {
      traces = await openTraces((detail, message) => {
        // What is wrong with the environment, which comes at once, is said by the first process: it has the same.
        if (traces !== null) send({ op: 'warning', detail, message });
      });
      receiver = createReceiver({
        host,
        port,
        path,
        reusePort,
        limits: shareOf(settings),
        ...replaceable(settings),
        clock: systemClock,
        admission: () => admission,
        ingest: link,
        onOutcome: (outcome, info) => link.answered(outcome, info),
        onError: (error) => link.error(error),
        tracing: traces.tracing ?? undefined,
      });
      send({ op: 'listening', ...(await receiver.listen()) });
      // Connections come and go without deliveries.
      setInterval(() => link.flush(), LOAD_EVERY).unref();
    } catch (error) {
      if (error instanceof MillraceError) send({ op: 'failed', code: error.code, detail: error.detail });
      else send({ op: 'failed', code: 'worker_failed', detail: messageOf(error) });
    }
  };
  const drain = async (): Promise<void> => {
    // Without a deadline: the first process has one, and ends this one then.
    await receiver?.drain(new AbortController().signal);
    link.flush();
    send({ op: 'drained' });
  };
  const close = async (): Promise<void> => {
    await receiver?.close();
    link.flush();
    await traces?.stop();
    await io.send({ op: 'drained' });
    io.exit();
  };

  io.onOrder((order) => {
    switch (order.op) {
      case 'start':
        ({ admission } = order);
        void start(order.settings, order.port);
        break;
      case 'settings':
        receiver?.replace(replaceable(order.settings));
        send({ op: 'settled' });
        break;
      case 'results':
        link.settle(order.results);
        break;
      case 'admission':
        ({ admission } = order);
        break;
      case 'drain':
        void drain();
        break;
      case 'close':
        void close();
        break;
      default:
        order satisfies never;
    }
  });
  send({ op: 'ready' });
}

function loadOf(receiver: Receiver | null): ReceiverLoad {
  const { inFlight = 0, decompressing = 0, connections } = receiver ?? {};
  const { open = 0, evicted = 0, dropped = 0 } = connections ?? {};
  return { inFlight, decompressing, connections: { open, evicted, dropped } };
}

function replaceable(settings: Settings): Replaceable {
  return {
    verifier: createVerifier(settings.signing),
    validate: createValidatorFor(settings),
    quarantineStatus: settings.quarantine.respond,
  };
}
