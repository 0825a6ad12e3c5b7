import type { Inlet } from './core/sink.ts';
import type { Intake } from './intake.ts';
import type { Plan } from './plan.ts';
import { createSourceIntake, type IntakeOptions } from './sources/intake.ts';

export interface InletOptions extends Pick<IntakeOptions, 'validate'> {
  /** The plan in force; a reload replaces it. */
  readonly plan: () => Plan;
  readonly accept: Intake['accept'];
  readonly quarantine: Intake['quarantine'];
}

/** The way into the journal for events that sinks make; null where there is none. */
export function openInlet({ plan, validate, accept, quarantine }: InletOptions): Inlet | null {
  const { acknowledge, server } = plan().config;
  if (acknowledge === 'delivered') return null;
  return {
    fields: () => plan().config.envelope,
    take: (name, batch) =>
      createSourceIntake({
        name,
        validate,
        accept: (event, key) => accept(event, key),
        quarantine: (event, reasons, key) => quarantine(event, reasons, key),
        maxBytes: server.maxBodyBytes,
      })(batch),
  };
}
