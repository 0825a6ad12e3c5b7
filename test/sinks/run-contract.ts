import { expect, it } from 'vitest';
import { sinkContract, type ContractSubject } from '../../src/sinks/contract.ts';

/** Runs the sink contract; what a subject cannot do is skipped under its reason. */
export async function runContract(make: () => Promise<ContractSubject>): Promise<void> {
  it.for(await sinkContract(make))('$name', async ({ run, skip: reason }, { skip }) => {
    skip(reason !== undefined, reason);
    await expect(run()).resolves.toBeUndefined();
  });
}
