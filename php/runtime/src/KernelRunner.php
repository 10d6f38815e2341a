<?php

declare(strict_types=1);

namespace Surus\Runtime;

use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpKernel\HttpCache\HttpCache;
use Symfony\Component\HttpKernel\HttpKernelInterface;
use Symfony\Component\HttpKernel\KernelInterface;
use Symfony\Component\HttpKernel\TerminableInterface;
use Symfony\Component\Runtime\RunnerInterface;

/**
 * Boots a kernel once and serves requests with it, one at a time.
 *
 * After each request its services are reset, by Symfony's `services_resetter`. After one that did not come to its end,
 * because of `exit` or an exception that nobody caught, the kernel is booted anew.
 *
 * @internal
 */
final class KernelRunner implements RunnerInterface
{
    /** The application's own, which has the container. */
    private readonly ?KernelInterface $kernel;

    /** Whether the current request came to its end, and its status. */
    private bool $isComplete = false;
    private int $status = 0;

    public function __construct(private readonly HttpKernelInterface $application)
    {
        $inner = $application;
        while ($inner instanceof HttpCache) {
            $inner = $inner->getKernel();
        }
        $this->kernel = $inner instanceof KernelInterface ? $inner : null;
    }

    public function run(): int
    {
        $this->kernel?->boot();
        $variables = new BootVariables();
        $folder = $this->sessionFolder();
        $handler = function () use ($variables, $folder): void {
            $this->isComplete = false;
            $variables->restore();
            if ($folder !== null) {
                ini_set('session.save_path', $folder);
            }
            $this->answer();
            $this->isComplete = true;
        };
        while (\Surus\handle_request($handler)) {
            $this->cleanUp();
        }

        return 0;
    }

    private function answer(): void
    {
        $request = Request::createFromGlobals();
        $response = $this->application->handle($request);
        $this->status = $response->getStatusCode();
        // Also ends the exchange with the client, by fastcgi_finish_request(): the work that follows is after the response.
        $response->send();
        if ($this->application instanceof TerminableInterface) {
            $this->application->terminate($request, $response);
        }
    }

    /** Between two requests. What it throws ends this isolate, and another one boots. */
    private function cleanUp(): void
    {
        if ($this->kernel === null) {
            return;
        }
        $hasFailed = !$this->isComplete || $this->status >= 500;
        DoctrineConnections::close($this->kernel->getContainer(), $hasFailed);
        if (!$this->isComplete) {
            $this->kernel->shutdown();
        }
        // If it has booted, this resets its services.
        $this->kernel->boot();
    }

    /**
     * Where session files are, if the application says so. Symfony's handler sets it when it is made, which is in the first
     * request that has a session: it would hold for this request only.
     */
    private function sessionFolder(): ?string
    {
        $container = $this->kernel?->getContainer();
        if ($container === null || !$container->hasParameter('session.save_path')) {
            return null;
        }
        $folder = $container->getParameter('session.save_path');

        return is_string($folder) && $folder !== '' ? $folder : null;
    }
}
