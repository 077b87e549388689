// only_ours.cpp: a plugin that lets clang-tidy look at our declarations only.
//
// clang-tidy 19 shows each check all that a file includes, for which it reads the whole of a
// precompiled header, and then drops what it found in headers of the system: that is most of its
// time. With this its checks see what stands at the top of our files, and everything in it, with
// all instances of our templates. What compiling says, its warnings too, stays as it is.
//
// What a check no longer sees is the code of the system's headers as something to complain about,
// and the translation unit as the parent of what is outside all namespaces. Of the checks in
// .clang-tidy one looks at either: bugprone-forward-declaration-namespace no longer compares a
// class that we declare and never define with classes of the system.
//
// ./dev compiles and loads it, and makes sure that it lets a fault through.

#include <clang/AST/ASTConsumer.h>
#include <clang/AST/ASTContext.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendPluginRegistry.h>

#include <memory>
#include <string>
#include <vector>

namespace {

class narrow : public clang::ASTConsumer {
    void HandleTranslationUnit(clang::ASTContext& context) override {
        const clang::SourceManager& sources = context.getSourceManager();
        std::vector<clang::Decl*> ours;
        // Without loading: nothing in a precompiled header is ours (cmake/rondo.cmake).
        for (clang::Decl* one : context.getTranslationUnitDecl()->noload_decls()) {
            if (!one->isImplicit() && !sources.isInSystemHeader(one->getLocation())) {
                ours.push_back(one);
            }
        }
        context.setTraversalScope(ours);
    }
};

class only_ours : public clang::PluginASTAction {
    std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance&,
                                                          llvm::StringRef) override {
        return std::make_unique<narrow>();
    }
    bool ParseArgs(const clang::CompilerInstance&, const std::vector<std::string>&) override {
        return true;
    }
    // Before clang-tidy, which is the main one, gets the file.
    ActionType getActionType() override { return AddBeforeMainAction; }
};

const clang::FrontendPluginRegistry::Add<only_ours> added("only-ours", "look at our declarations");

}  // namespace
